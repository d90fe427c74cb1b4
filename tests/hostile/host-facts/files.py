# Reads what belongs to the host and its users.
for path in ("/etc/shadow", "/etc/sudoers", "/root/.bash_history", "/root/.ssh/authorized_keys", "/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock", "/var/log/syslog", "/var/lib/docker", "/boot/grub/grub.cfg", "/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/kvm", "/dev/fuse", "/dev/net/tun", "/home", "/srv", "/root"):
    if content(path) or attempt(os.listdir, path):
        breach(f"sees {path}")

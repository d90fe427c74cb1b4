# Reads what tells one machine from another.
# sandbox: process
for path in ("/proc/sys/kernel/random/boot_id", "/etc/machine-id", "/var/lib/dbus/machine-id", "/sys/class/dmi/id/product_uuid", "/sys/class/net/eth0/address", "/etc/hostname", "/proc/device-tree/serial-number", "/etc/resolv.conf", "/etc/ssh/ssh_host_rsa_key.pub"):
    if content(path):
        breach(f"read {path}")

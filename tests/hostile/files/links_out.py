# Leaves links to what only the server can read.
for i, target in enumerate(("/etc/shadow", "/proc/1/environ", "/proc/self/environ", "/root/.ssh/id_rsa", "/proc/1/root/etc/shadow", "../../../../etc/shadow", "/var/run/docker.sock")):
    os.symlink(target, f"link{i}.txt")
os.symlink("/", "root")
os.symlink("loop", "loop")
os.mkdir("real")
os.symlink("/etc", "real/etc")

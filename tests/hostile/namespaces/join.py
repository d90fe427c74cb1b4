# Joins the namespaces of process 1 and of itself, by files and by a descriptor of the process.
pidfd = syscall(434, 1, 0)
for flag in (0, 0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
    if syscall(308, pidfd, flag) >= 0:
        breach(f"joined {flag:#x} of process 1")
for pid in ("1", "self"):
    for name in attempt(os.listdir, f"/proc/{pid}/ns") or ():
        fd = attempt(os.open, f"/proc/{pid}/ns/{name}", os.O_RDONLY)
        if fd is not None and (syscall(308, fd, 0) >= 0 or attempt(fcntl.ioctl, fd, 0xB702) is not None):
            breach(f"used the namespace {name} of {pid}")

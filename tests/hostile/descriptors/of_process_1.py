# Opens the descriptors of process 1, by name and by a descriptor of the process.
pidfd = syscall(434, 1, 0)
for number in range(64):
    if attempt(os.open, f"/proc/1/fd/{number}", os.O_RDONLY) is not None or syscall(438, pidfd, number, 0) >= 0:
        breach(f"has descriptor {number} of process 1")
names = attempt(os.listdir, "/proc/1/fd")
if names:
    breach("lists the descriptors of process 1")

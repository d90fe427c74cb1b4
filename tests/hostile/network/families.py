# Makes sockets of every family.
for family in range(64):
    for kind in (1, 2, 3, 5):
        fd = syscall(41, family, kind, 0)
        if fd >= 0:
            os.close(fd)
            if family not in (1, 2, 10) or kind == 3 and family != 1:
                breach(f"socket of family {family}, kind {kind}")

# Makes children in namespaces of each kind, with user namespaces and without.
for flag in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000, 0x30000000, 0x7E020000):
    pid = syscall(56, flag | 17, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    if pid > 0:
        breach(f"clone {flag:#x}")

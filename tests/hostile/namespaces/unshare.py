# Makes namespaces of each kind.
for flag in (0x80, 0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000, 0x7E020080):
    if syscall(272, flag) >= 0:
        breach(f"unshare {flag:#x}")

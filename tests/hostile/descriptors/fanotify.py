# Watches whole mounts, and asks to decide who may open what.
for flags in (0, 4, 8, 0x200, 0x400, 0x2E00):
    fd = syscall(300, flags, 0)
    if fd >= 0:
        breach(f"fanotify with flags {flags:#x}")

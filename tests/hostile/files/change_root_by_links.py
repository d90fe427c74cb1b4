# Climbs out by names: dots, links in /proc, working directories of others, descriptors.
for path in ("/proc/1/root", "/proc/1/cwd", "/proc/self/root/..", "/proc/self/cwd/../../..", "/proc/self/task/1/root", "/proc/1/task/1/cwd"):
    names = attempt(os.listdir, path)
    if names and ("1/root" in path or "1/cwd" in path) and os.stat(path).st_dev != os.stat("/").st_dev and "hostile" not in names:
        breach(f"lists {path}: {names[:5]}")
    for resolve in (0, 0x10):
        syscall(437, -100, path.encode(), ctypes.c_char_p(struct.pack("QQQ", 0, 0, resolve)), 24)

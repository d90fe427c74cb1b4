# Reads whatever process 1 shows of itself.
for name in os.listdir("/proc/1"):
    if name in ("environ", "maps", "mem", "auxv", "stack", "syscall", "pagemap", "smaps", "io", "personality", "timers", "fd", "map_files", "root", "cwd", "exe", "mountinfo", "ns", "patch_state", "clear_refs"):
        path = f"/proc/1/{name}"
        found = attempt(os.readlink, path) or attempt(os.listdir, path) or content(path)
        if found and name not in ("ns", "timers", "fd", "mountinfo") and not (name in ("root", "cwd") and found == "/"):
            breach(f"{path} is {found[:80]!r}")

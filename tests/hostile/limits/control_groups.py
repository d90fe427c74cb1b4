# Looks for control groups, joins others and raises its own limits.
import glob
for pattern in ("/sys/fs/cgroup/**/cgroup.procs", "/sys/fs/cgroup/**/memory.max", "/sys/fs/cgroup/**/memory.limit_in_bytes", "/sys/fs/cgroup/**/pids.max", "/sys/fs/cgroup/**/cgroup.freeze"):
    for path in glob.glob(pattern, recursive=True):
        if written(path, "1" if "procs" in path or "freeze" in path else "max"):
            breach(f"wrote to {path}")

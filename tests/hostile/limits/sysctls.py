# Writes to every setting of the kernel that it can open.
import glob
for path in glob.glob("/proc/sys/**", recursive=True):
    if os.path.isfile(path) and not path.endswith(("ns_last_pid", "drop_caches")) and not path.startswith("/proc/sys/net"):
        value = content(path)
        if value and written(path, value):
            breach(f"wrote to {path}")

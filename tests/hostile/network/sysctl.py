# Changes the settings of its network namespace, which are limits of memory for the machine.
import glob
for path in glob.glob("/proc/sys/net/**", recursive=True):
    if os.path.isfile(path):
        value = content(path)
        if value and written(path, value):
            breach(f"wrote to {path}")

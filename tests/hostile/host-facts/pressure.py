# Reads how busy other programs keep the machine.
# sandbox: process
for path in ("/proc/pressure/cpu", "/proc/pressure/io", "/proc/pressure/memory", "/proc/schedstat"):
    if content(path):
        breach(f"read {path}")

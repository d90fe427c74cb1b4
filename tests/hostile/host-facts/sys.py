# Looks for the file system that shows the machine's devices.
# sandbox: process
for path in ("/sys", "/sys/class/net", "/sys/block", "/sys/devices/system/cpu", "/sys/fs/cgroup", "/sys/kernel/slab", "/sys/module"):
    if attempt(os.listdir, path):
        breach(f"sees {path}")

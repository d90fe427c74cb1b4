# Reads the kernel's log by every way.
for action in (2, 3, 4, 9, 10):
    if syscall(103, action, ctypes.create_string_buffer(1024), 1024) > 0:
        breach(f"syslog action {action}")
for path in ("/dev/kmsg", "/proc/kmsg", "/dev/console", "/dev/mem", "/dev/port", "/proc/kcore", "/sys/kernel/debug/tracing/trace", "/sys/kernel/tracing/trace"):
    if attempt(os.open, path, os.O_RDONLY | os.O_NONBLOCK) is not None and path not in ("/dev/console",):
        if content(path):
            breach(f"read {path}")

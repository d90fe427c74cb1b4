# Traces process 1, or has itself traced by it.
for request, pid in ((16, 1), (0x4206, 1), (0, 0), (0x4206, os.getppid())):
    if syscall(101, request, pid, 0, 0) >= 0:
        breach(f"ptrace request {request:#x} of {pid}")

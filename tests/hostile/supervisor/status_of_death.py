# Dies in strange ways while children hold its descriptors: core, stopped, exit codes beyond a byte.
for _ in range(5):
    attempt(spawn, time.sleep, 30)
_LIBC.syscall(231, 0x12345678)

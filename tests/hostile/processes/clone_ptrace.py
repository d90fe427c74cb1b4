# Clones with the flags that pass a tracer on or keep one away.
for flags in (0x2000, 0x00800000, 0x2000 | 0x00800000):
    pid = syscall(56, flags | 17, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    if pid > 0:
        os.waitpid(pid, 0)

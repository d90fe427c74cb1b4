# Makes children that report their end by another signal than SIGCHLD, or by none.
for number in (0, 9, 18, 19, 34, 64):
    pid = syscall(56, number, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
time.sleep(0.2)

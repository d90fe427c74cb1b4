# Changes the pipes that its output goes through: size, mode, signals, direction.
for fd in (1, 2):
    for size in (1 << 20, 1 << 30, 4096, 0):
        attempt(fcntl.fcntl, fd, 1031, size)
    attempt(fcntl.fcntl, fd, fcntl.F_SETFL, os.O_NONBLOCK | os.O_DIRECT | os.O_ASYNC)
    attempt(os.lseek, fd, 0, 0)
    r = attempt(os.open, f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_NONBLOCK)
    print(r and attempt(os.read, r, 10))

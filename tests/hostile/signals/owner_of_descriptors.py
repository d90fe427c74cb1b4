# Has the kernel send signals to process 1 and to groups when descriptors become ready (F_SETOWN, F_SETSIG).
a, b = socket.socketpair()
for owner in (1, -1, os.getppid(), -os.getpgid(0), 2, -2):
    attempt(fcntl.fcntl, a, fcntl.F_SETOWN, owner)
    attempt(fcntl.fcntl, a, fcntl.F_SETSIG, 9)
    attempt(fcntl.fcntl, a, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    attempt(b.send, b"x")
    attempt(a.recv, 1)

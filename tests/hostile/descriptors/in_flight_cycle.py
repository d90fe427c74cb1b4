# Sends sockets through themselves, so that only the kernel's garbage collection frees them.
for _ in range(300):
    a, b = socket.socketpair()
    if attempt(socket.send_fds, a, [b"x"], [a.fileno(), b.fileno()]) is None:
        break
    attempt(socket.send_fds, b, [b"x"], [a.fileno(), b.fileno()])
    a.close()
    b.close()

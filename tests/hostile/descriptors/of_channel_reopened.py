# Opens its sockets a second time, sends them around and changes their buffers and options.
# tools: ask
for fd in (3, 4):
    attempt(os.open, f"/proc/self/fd/{fd}", os.O_RDWR)
    s = attempt(socket.socket, fileno=attempt(os.dup, fd))
    for option, value in ((7, 1), (8, 1), (7, 1 << 30), (20, 1), (16, 1), (34, 1), (42, 100), (18, 1), (9, 1)):
        attempt(s.setsockopt, socket.SOL_SOCKET, option, value)
    attempt(s.setsockopt, socket.SOL_SOCKET, 20, struct.pack("ll", 0, 1))
    attempt(s.listen, 5)
print(await ask())

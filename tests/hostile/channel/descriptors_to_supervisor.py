# Hands sockets that take an hour to close to the supervisor and the server, to make them hang in close(2).
# timeout: 2000
listener = socket.create_server(("127.0.0.1", 0))
full, peer = socket.create_connection(listener.getsockname()), listener.accept()[0]
full.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3600))
full.setblocking(False)
while attempt(full.send, bytes(1 << 16)):
    pass
for fd in (3, 4):
    stream = socket.socket(fileno=os.dup(fd))
    for _ in range(40):
        attempt(socket.send_fds, stream, [b"\0"], [full.fileno(), peer.fileno()])
full.close()

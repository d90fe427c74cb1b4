# Ends while closing a socket takes an hour (SO_LINGER with a full buffer).
# timeout: 2000
listener = socket.create_server(("127.0.0.1", 0))
s, peer = socket.create_connection(listener.getsockname()), listener.accept()[0]
s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3600))
s.setblocking(False)
try:
    while True:
        s.send(bytes(1 << 16))
except BlockingIOError:
    pass
if os.fork() == 0:
    s.setblocking(True)
    s.close()

# Opens and resets connections to itself as fast as it can.
listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
end = time.monotonic() + 1
while time.monotonic() < end:
    s = attempt(socket.create_connection, listener.getsockname(), 0.2)
    if s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.close()
    attempt(lambda: listener.accept()[0].close()) if select.select([listener], [], [], 0)[0] else None

# Ends with thousands of connections that are half closed.
listener = socket.create_server(("127.0.0.1", 0), backlog=500)
kept = []
for _ in range(300):
    s = attempt(socket.create_connection, listener.getsockname(), 0.5)
    if s:
        other = listener.accept()[0]
        attempt(other.shutdown, socket.SHUT_WR)
        kept += [s, other]

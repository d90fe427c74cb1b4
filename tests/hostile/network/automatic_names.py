# Binds unnamed sockets until there are no names left.
kept = []
for _ in range(900):
    s = attempt(socket.socket, socket.AF_UNIX)
    if s:
        attempt(s.bind, "")
        kept.append(s)

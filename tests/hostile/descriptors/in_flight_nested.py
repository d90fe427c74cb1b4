# Puts sockets into sockets into sockets, hundreds deep.
previous = socket.socketpair()
for _ in range(450):
    pair = attempt(socket.socketpair)
    if pair is None or attempt(socket.send_fds, pair[0], [b"x"], [previous[0].fileno(), previous[1].fileno()]) is None:
        break
    for s in previous:
        s.close()
    previous = pair

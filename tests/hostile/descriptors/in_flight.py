# Sends descriptors into its own sockets until the user's count of those in flight is used up, and pauses.
# tools: ask
kept, sent = [], 0
null = os.open("/dev/null", os.O_RDONLY)
try:
    while len(kept) < 600:
        pair = socket.socketpair()
        kept += pair
        pair[0].setblocking(False)
        while True:
            try:
                socket.send_fds(pair[0], [b"x"], [null] * 250)
                sent += 250
            except BlockingIOError:
                break
except OSError:
    pass
await ask()

# Closes one direction of its channels, then the other, and calls.
# tools: ask
# timeout: 1500
for how in (socket.SHUT_RD, socket.SHUT_WR):
    for fd in (4, 3):
        attempt(lambda: socket.socket(fileno=os.dup(fd)).shutdown(how))
    print(await asyncio.wait_for(ask(), 0.3))

# Holds memory in the buffers of connections to itself, over a pause.
# tools: ask
# timeout: 5000
listener = socket.create_server(("127.0.0.1", 0), backlog=500)
kept, held = [], 0
for _ in range(240):
    try:
        s = socket.create_connection(listener.getsockname(), 0.5)
        kept += [s, listener.accept()[0]]
        s.setblocking(False)
        while True:
            held += s.send(bytes(1 << 18))
    except OSError:
        pass
if held > 300 << 20:
    breach(f"{held >> 20} MiB in buffers of TCP")
await ask()

# Sends a frame of every kind with nothing, something and nonsense in it, to both ends.
# tools: ask
for kind in range(256):
    for payload in (b"", b"{}", b"[" * 1000, b"\xff" * 100):
        send(struct.pack(">IB", len(payload), kind) + payload)
await ask()

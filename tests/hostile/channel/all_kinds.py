# Sends a frame of every kind to both ends: empty, valid and with nonsense in it.
# tools: ask
for kind in range(256):
    for payload in (b"", b"{}", b"[" * 1000, b"\xff" * 100):
        send(struct.pack(">IB", len(payload), kind) + payload)
await ask()

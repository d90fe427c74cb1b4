# Pauses with nearly all memory used and files full.
# tools: ask
data = bytearray(64 << 20)
attempt(lambda: open("/dev/shm/full", "wb").write(bytes(16 << 20)))
await ask()

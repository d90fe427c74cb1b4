# Runs out of memory right after a pause.
# tools: ask
await ask()
data = []
while True:
    data.append(bytearray(16 << 20))

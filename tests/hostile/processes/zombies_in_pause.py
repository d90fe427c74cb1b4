# Holds zombies over a pause.
# tools: ask
for _ in range(20):
    attempt(spawn, int)
await ask()

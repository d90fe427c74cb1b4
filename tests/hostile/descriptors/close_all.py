# Closes every descriptor, its output included, and goes on.
# tools: ask
os.closerange(0, 4096)
await ask()

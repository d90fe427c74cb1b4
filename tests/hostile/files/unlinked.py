# Keeps large files that have no name any more.
# tools: ask
kept = []
for i in range(10):
    file = open("/tmp/unlinked", "wb+", 0)
    attempt(file.write, bytes(1 << 20))
    os.unlink("/tmp/unlinked")
    kept.append(file)
await ask()

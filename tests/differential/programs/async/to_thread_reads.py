def read(path):
    with open(path, encoding="utf-8") as f:
        return sum(1 for _ in f)
counts = await asyncio.gather(*(asyncio.to_thread(read, p) for p in ("notes.txt", "server.log")))
print(counts)

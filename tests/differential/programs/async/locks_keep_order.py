lock = asyncio.Lock()
log = []
async def step(n):
    async with lock:
        log.append(f"in {n}")
        await echo(n)
        log.append(f"out {n}")
await asyncio.gather(*(step(n) for n in range(3)))
print(log)

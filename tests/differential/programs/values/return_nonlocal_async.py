count = 0
async def add(n):
    global count
    count += await echo(n)
await asyncio.gather(*(add(n) for n in range(5)))
return count

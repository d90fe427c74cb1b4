ready = asyncio.Event()
cond = asyncio.Condition()
items = []
async def waiter():
    await ready.wait()
    async with cond:
        await cond.wait_for(lambda: len(items) >= 2)
    return items[:]
async def setter():
    ready.set()
    for n in range(2):
        async with cond:
            items.append(await echo(n))
            cond.notify_all()
print((await asyncio.gather(waiter(), setter()))[0])

async def slow_part():
    async with asyncio.timeout(0.05):
        await asyncio.sleep(5)
try:
    await slow_part()
except TimeoutError as e:
    print("too slow", repr(e))
async with asyncio.timeout(5) as t:
    print((await echo("in time")), t.expired())

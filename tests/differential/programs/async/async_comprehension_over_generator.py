async def ticks(n):
    for i in range(n):
        yield await echo(i)
print([x async for x in ticks(4) if x % 2], {x: x * x async for x in ticks(3)}, sum([x async for x in ticks(5)]))

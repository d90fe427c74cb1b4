async def row(n):
    value = await echo(n)
    return 10 // value
print(await asyncio.gather(row(5), row(0), row(2)))

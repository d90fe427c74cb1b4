import asyncio
async def one(n):
    return await echo(value=n)
print(asyncio.run(one(1)))
print(asyncio.run(one(2)))

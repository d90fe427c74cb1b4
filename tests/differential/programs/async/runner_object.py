import asyncio
async def f(n):
    return n + (await echo(1))
with asyncio.Runner() as runner:
    print(runner.run(f(1)), runner.run(f(2)))

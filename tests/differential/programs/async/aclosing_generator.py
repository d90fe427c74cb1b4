from contextlib import aclosing, asynccontextmanager
async def rows():
    try:
        while True:
            yield await echo(1)
    finally:
        print("closed")
async with aclosing(rows()) as r:
    async for x in r:
        print(x)
        break
@asynccontextmanager
async def connection(name):
    print("connect", await echo(name))
    yield name.upper()
    print("disconnect")
async with connection("db") as c:
    print(c)

import contextvars
request = contextvars.ContextVar("request", default="none")
async def handle(name):
    request.set(name)
    await echo(0)
    return request.get()
print(await asyncio.gather(handle("a"), handle("b")), request.get())

# Makes a generator and a coroutine that refuse to be closed.
# timeout: 1500
def stay():
    while True:
        try:
            yield
        except GeneratorExit:
            pass
kept = stay()
next(kept)
async def wait():
    while True:
        try:
            await asyncio.sleep(3600)
        except BaseException:
            pass
task = asyncio.ensure_future(wait())
await asyncio.sleep(0)

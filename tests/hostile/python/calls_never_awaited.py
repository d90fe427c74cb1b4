# Makes calls and drops them, cancels them, and awaits them twice.
# tools: ask
for _ in range(100):
    ask()
    task = asyncio.ensure_future(ask())
    await asyncio.sleep(0)
    task.cancel()
coroutine = ask()
await coroutine
await coroutine

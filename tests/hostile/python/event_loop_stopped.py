# Stops and closes the loop while calls wait, and cancels all tasks, the runner's own among them.
# tools: ask
loop = asyncio.get_running_loop()
task = asyncio.ensure_future(ask())
await asyncio.sleep(0)
for other in asyncio.all_tasks():
    other.cancel()
loop.stop()
await task

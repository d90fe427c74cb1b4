# Stops the clocks: the runner's, the event loop's and the library's.
# tools: ask
# timeout: 1500
loop = asyncio.get_running_loop()
loop.time = lambda: 0.0
time.monotonic = time.time = time.perf_counter = lambda: 0.0
await ask()
while True:
    pass

# Replaces the runner's event loop by one of its own, and closes the runner's.
# tools: ask
loop = asyncio.get_running_loop()
loop.call_soon(lambda: setattr(loop, "_selector", None))
asyncio.set_event_loop(asyncio.new_event_loop())
asyncio.set_event_loop_policy(None)
asyncio.events._set_running_loop(None)
await ask()

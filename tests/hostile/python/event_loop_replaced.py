# Puts an event loop of its own make in the place of the runner's, and closes that.
# tools: ask
loop = asyncio.get_running_loop()
loop.call_soon(lambda: setattr(loop, "_selector", None))
asyncio.set_event_loop(asyncio.new_event_loop())
asyncio.set_event_loop_policy(None)
asyncio.events._set_running_loop(None)
await ask()

async def never():
    await asyncio.Event().wait()
try:
    await asyncio.wait_for(never(), 0.05)
except asyncio.TimeoutError as e:
    print("timed out", type(e).__name__, isinstance(e, TimeoutError))

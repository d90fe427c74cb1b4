try:
    print(await asyncio.wait_for(slow(value="late", seconds=0.4), 0.15))
except asyncio.TimeoutError:
    print("gave up")

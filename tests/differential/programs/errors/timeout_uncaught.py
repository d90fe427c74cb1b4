async with asyncio.timeout(0.02):
    await asyncio.sleep(3)

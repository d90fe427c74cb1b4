t = asyncio.create_task(asyncio.sleep(5))
await asyncio.sleep(0)
t.cancel()
await t

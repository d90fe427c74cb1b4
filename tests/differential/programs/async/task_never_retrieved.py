async def broken():
    raise ValueError("nobody looks")
t = asyncio.create_task(broken())
await asyncio.sleep(0.01)
del t
print("end")

async def save():
    await store_value("k", 1)
    return "saved"
inner = asyncio.create_task(save())
outer = asyncio.ensure_future(asyncio.shield(inner))
await asyncio.sleep(0)
outer.cancel()
try:
    await outer
except asyncio.CancelledError:
    print("outer cancelled")
print(await inner, await load_value("k"))

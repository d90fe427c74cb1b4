async def good():
    return await echo(1)
async def bad():
    await echo(0)
    raise ValueError("bad row")
async def forever():
    await asyncio.sleep(60)
tasks = [asyncio.create_task(c, name=n) for c, n in ((good(), "good"), (bad(), "bad"), (forever(), "forever"))]
done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
print(sorted(t.get_name() for t in done), [t.get_name() for t in pending])
for t in pending:
    t.cancel()
print(await asyncio.gather(*pending, return_exceptions=True))

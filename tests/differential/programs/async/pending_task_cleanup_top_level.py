async def worker():
    try:
        await asyncio.sleep(10)
    finally:
        print("cleanup", await echo(value=1))
t = asyncio.create_task(worker())
await asyncio.sleep(0)
print("main end")

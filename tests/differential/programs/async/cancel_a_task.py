async def worker():
    try:
        await asyncio.sleep(30)
    except asyncio.CancelledError:
        print("cancelled; cleaning")
        raise
    finally:
        print("finally")
task = asyncio.create_task(worker())
await asyncio.sleep(0)
task.cancel("enough")
try:
    await task
except asyncio.CancelledError as e:
    print(e.args, task.cancelled())

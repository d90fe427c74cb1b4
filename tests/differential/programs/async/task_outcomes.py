async def boom():
    raise KeyError("k")
t = asyncio.create_task(boom())
await asyncio.sleep(0)
print(t.done(), repr(t.exception()), t.cancelled())
f = asyncio.get_running_loop().create_future()
f.set_result(5)
print(await f, asyncio.isfuture(f), asyncio.iscoroutinefunction(boom) if sys.version_info < (3, 14) else True)

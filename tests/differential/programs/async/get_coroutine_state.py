import inspect
async def f():
    await echo(1)
c = f()
print(inspect.getcoroutinestate(c), inspect.iscoroutine(c), inspect.isawaitable(get_user(1) if False else c))
await c
print(inspect.getcoroutinestate(c))

import functools
def retry(times):
    def wrap(f):
        @functools.wraps(f)
        async def inner(*a, **k):
            for n in range(times):
                try:
                    return await f(*a, **k)
                except ToolExecutionError as e:
                    print(n, e)
            raise RuntimeError(f"{f.__name__} failed {times} times")
        return inner
    return wrap
@retry(3)
async def unstable(): return await flaky("a", failures=2)
@retry(2)
async def broken(): return await flaky("b", failures=9)
print(await unstable())
await broken()

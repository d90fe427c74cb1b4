async def retry(call, attempts=4, delay=0.01):
    for n in range(1, attempts + 1):
        try:
            return await call()
        except ToolExecutionError as e:
            print(f"attempt {n} failed: {e}")
            if n == attempts:
                raise
            await asyncio.sleep(delay * 2 ** n)

print(await retry(lambda: flaky(key="db", failures=2)))

import concurrent.futures
def cpu(n):
    return sum(i * i for i in range(n))
loop = asyncio.get_running_loop()
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    print(await asyncio.gather(*(loop.run_in_executor(pool, cpu, n) for n in (10, 100))))
print(await loop.run_in_executor(None, cpu, 5))

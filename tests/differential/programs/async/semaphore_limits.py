semaphore = asyncio.Semaphore(2)
running = 0
most = 0

async def limited(n):
    global running, most
    async with semaphore:
        running += 1
        most = max(most, running)
        result = await echo({"n": n})
        running -= 1
        return result["n"] ** 2

print(await asyncio.gather(*map(limited, range(6))))
print("at most", most)

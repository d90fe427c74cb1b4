barrier = asyncio.Barrier(3)
stages = []
async def part(n):
    stages.append(("a", n))
    await barrier.wait()
    stages.append(("b", n))
await asyncio.gather(*map(part, range(3)))
print(sorted(stages[:3]), sorted(stages[3:]))

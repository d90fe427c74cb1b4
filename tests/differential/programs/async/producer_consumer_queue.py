async def produce(q):
    for page in (1, 2):
        for item in (await list_orders(page=page))["items"]:
            await q.put(item["id"])
    await q.put(None)
async def consume(q):
    got = []
    while (item := await q.get()) is not None:
        got.append(item)
    return got
q = asyncio.Queue(maxsize=2)
_, got = await asyncio.gather(produce(q), consume(q))
print(got, q.empty())

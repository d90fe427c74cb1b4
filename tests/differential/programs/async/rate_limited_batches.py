def batches(items, n):
    for i in range(0, len(items), n):
        yield items[i : i + n]
out = []
for batch in batches(list(range(7)), 3):
    out += await asyncio.gather(*(convert(amount=x, source="EUR", target="USD") for x in batch))
    await asyncio.sleep(0.001)
print(out)

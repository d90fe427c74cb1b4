# Makes 20,000 calls at once.
# tools: ask
await asyncio.gather(*(ask(n=i) for i in range(20_000)))

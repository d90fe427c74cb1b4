# Makes calls of five megabytes each, dozens at once.
# tools: ask
results = await asyncio.gather(*(ask(text="x" * 4_900_000) for _ in range(12)), return_exceptions=True)
print(len(results))

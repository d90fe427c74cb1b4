from graphlib import TopologicalSorter
graph = {"c": {"a", "b"}, "b": {"a"}, "d": {"c"}}
ts = TopologicalSorter(graph); ts.prepare()
results = {}
async def run(n):
    results[n] = await echo(sorted(results))
while ts.is_active():
    ready = sorted(ts.get_ready())
    await asyncio.gather(*map(run, ready))
    ts.done(*ready)
print(results)

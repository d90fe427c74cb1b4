results = []
t = asyncio.create_task(echo(21))
t.add_done_callback(lambda t: results.append(t.result() * 2))
await t
await asyncio.sleep(0)
print(results)

users = await asyncio.gather(get_user(1), get_user(2))
await echo([u["name"] for u in users])

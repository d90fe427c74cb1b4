async def load(id):
    return (await get_user(id))["name"]
names = []
for future in asyncio.as_completed([load(i) for i in (1, 2, 3)]):
    names.append(await future)
print(sorted(names))

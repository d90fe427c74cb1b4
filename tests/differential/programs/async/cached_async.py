cache = {}
calls = 0
async def user(id):
    global calls
    if id not in cache:
        calls += 1
        cache[id] = asyncio.ensure_future(get_user(id))
    return (await cache[id])["name"]
print(await asyncio.gather(user(1), user(2), user(1)), calls)

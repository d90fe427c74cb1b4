async def name_of(id):
    user = await get_user(id=id)
    return user["name"]

async with asyncio.TaskGroup() as tg:
    tasks = [tg.create_task(name_of(i)) for i in (3, 1, 2)]
print([t.result() for t in tasks])

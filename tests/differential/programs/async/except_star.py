async def check(id):
    await get_user(id)
    raise ValueError(f"user {id} is wrong")
try:
    async with asyncio.TaskGroup() as tg:
        for i in (1, 50):
            tg.create_task(check(i))
except* ToolExecutionError as group:
    print("tools:", [str(e) for e in group.exceptions])
except* ValueError as group:
    print("values:", [str(e) for e in group.exceptions])

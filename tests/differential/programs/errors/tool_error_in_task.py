async def job(n):
    return await get_user(n)
t = asyncio.create_task(job(44))
await t

import asyncio
async def load(id):
    user = await get_user(id)
    return user["manager"]["name"]
async def main():
    await load(2)
asyncio.run(main())

import asyncio
async def fetch(id):
    u = await get_user(id=id)
    return u["name"]
async def main():
    return await asyncio.gather(fetch(1), fetch(2))
names = asyncio.run(main())
print(names)

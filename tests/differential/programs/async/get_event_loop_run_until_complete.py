import asyncio
loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)
try:
    print(loop.run_until_complete(asyncio.gather(*[get_user(i) for i in (1, 3)]))[1]["name"]) if sys.version_info < (3, 10) else None
    async def main():
        return await get_user(3)
    print(loop.run_until_complete(main())["name"])
finally:
    loop.close()
print(loop.is_closed())

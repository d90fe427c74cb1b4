async def main():
    async with asyncio.TaskGroup() as tg:
        tg.create_task(get_user(1))
        tg.create_task(get_user(77))
asyncio.run(main())

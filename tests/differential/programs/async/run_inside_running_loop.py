async def main():
    return await echo(1)
x = await echo(2)
try:
    asyncio.run(main())
except RuntimeError as e:
    print(e)

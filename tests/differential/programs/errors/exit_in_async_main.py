import asyncio, sys
async def main():
    await echo(1)
    print("will exit")
    sys.exit(7)
asyncio.run(main())

import asyncio
async def main():
    print("never")
main()
print("done")

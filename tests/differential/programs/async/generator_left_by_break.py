async def rows():
    try:
        for n in range(5):
            yield await echo(n)
    finally:
        print("closed", await echo("x"))
async for r in rows():
    print(r)
    if r == 1:
        break
print("after the loop")

import asyncio, atexit
def bye():
    print("bye", asyncio.run(echo(value="last")))
atexit.register(bye)
print("work")

async def work():
    try:
        await fail("step 1")
    finally:
        print("released", await echo("lock"))
try:
    await work()
except ToolExecutionError as e:
    print("error:", e)

# Makes callbacks that call themselves for ever, so that the loop never rests.
# tools: ask
# timeout: 1000
loop = asyncio.get_running_loop()
def again():
    loop.call_soon(again)
again()
await ask()

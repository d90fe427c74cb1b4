# Calls a tool when no process and no thread can be made any more.
# tools: ask
try:
    while True:
        spawn(time.sleep, 60)
except OSError:
    pass
print(await ask(a=1), await asyncio.gather(ask(b=2), ask(c=3)))

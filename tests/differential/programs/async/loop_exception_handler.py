messages = []
loop = asyncio.get_running_loop()
loop.set_exception_handler(lambda loop, context: messages.append((context["message"][:20], type(context.get("exception")).__name__)))
loop.call_soon(lambda: 1 / 0)
await asyncio.sleep(0.01)
print(messages)

loop = asyncio.get_running_loop()
order = []
loop.call_later(0.08, order.append, "late")
loop.call_later(0.02, order.append, "early")
loop.call_soon(order.append, "soon")
await asyncio.sleep(0.15)
print(order)

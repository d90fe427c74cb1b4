cities = await echo(["Paris", "Rome"])
r = asyncio.gather(*(get_weather(city=c) for c in cities))
print(type(r).__name__)

import asyncio
r = asyncio.gather(get_weather(city="Paris"), get_weather(city="Rome"))
print(type(r).__name__)

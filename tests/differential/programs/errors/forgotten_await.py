import asyncio
result = get_weather(city="Paris")
print(type(result).__name__)
try:
    print(result["celsius"])
except TypeError as e:
    print(e)

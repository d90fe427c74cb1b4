weather = await get_weather(city="Paris")
print(weather["city"], weather["celsius"], weather["sky"])

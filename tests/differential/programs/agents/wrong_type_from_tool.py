w = await get_weather("Paris")
print("Temperature: " + w["celsius"])

total = 0
for city in ("Paris", "Oslo"):
    w = await get_weather(city)
    total += w["celsius"]
    print(city, w["celsius"])
print("mean", total / 2)

cities = ["Paris", "Rome", "Oslo"]
results = await asyncio.gather(*(get_weather(city=c, days=2) for c in cities))
warmest = max(results, key=lambda r: r["celsius"])
for r in results:
    print(r["city"], [d["celsius"] for d in r["forecast"]])
print("warmest:", warmest["city"])

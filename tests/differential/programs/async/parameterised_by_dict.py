jobs = [{"city": "Rome"}, {"city": "Lima", "days": 2}]
for r in await asyncio.gather(*(get_weather(**j) for j in jobs)):
    print(r["city"], len(r["forecast"]))
print((await get_weather({"city": "Oslo"}))["sky"])

weather = await get_weather(town="Paris")

import time
done = 0
for n, city in enumerate(["Paris", "Rome", "Atlantis"], 1):
    print(f"[{n}/3] {city}… ", end="", flush=True)
    try:
        r = await get_weather(city)
        print("ok"); done += 1
    except ToolExecutionError as e:
        print(f"failed ({e})")
print(f"{done} of 3"); assert done == 3, "not all cities have weather"

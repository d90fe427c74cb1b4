names = ["get_weather", "get_horoscope"]
for name in names:
    tool = globals().get(name) or getattr(__import__("builtins"), name, None)
    print(name, "is there" if tool else "is missing", callable(tool))

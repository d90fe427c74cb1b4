class Thing: pass
for value in (Thing(), {1, 2}, b"x", lambda: 1):
    try:
        await echo(value)
    except TypeError as e:
        print(type(value).__name__, "is refused")

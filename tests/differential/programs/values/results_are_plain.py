r = await echo({"i": 2 ** 70, "f": 0.1, "n": None, "t": [1, (2, 3)], "b": True, "s": "\u0000\u2028"})
print(r, type(r["t"][1]).__name__, r["i"] + 1)

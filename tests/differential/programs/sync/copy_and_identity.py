import copy
a = {"list": [1, {"x": 2}], "t": (1, [2])}
b, c = copy.copy(a), copy.deepcopy(a)
a["list"][1]["x"] = 99
print(b["list"][1], c["list"][1], a["t"] is b["t"], a["t"] is c["t"], copy.replace(slice(1), stop=2) if hasattr(copy, "replace") and hasattr(slice, "__replace__") else "-")

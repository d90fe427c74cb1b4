def merge(a, b):
    out = dict(a)
    for k, v in b.items():
        out[k] = merge(out[k], v) if isinstance(v, dict) and isinstance(out.get(k), dict) else v
    return out
a, b = await asyncio.gather(echo({"x": {"y": 1}, "l": [1]}), echo({"x": {"z": 2}, "l": [2]}))
print(merge(a, b))

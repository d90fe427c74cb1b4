cache = pathlib.Path("cache.json")
async def rate(code):
    known = json.loads(cache.read_text()) if cache.exists() else {}
    if code not in known:
        known[code] = await convert(1, "EUR", code)
        cache.write_text(json.dumps(known, sort_keys=True))
    return known[code]
print([await rate(c) for c in ("USD", "JPY", "USD")])

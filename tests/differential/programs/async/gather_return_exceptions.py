outcomes = await asyncio.gather(get_user(1), get_user(99), fail("no disk"), return_exceptions=True)
for o in outcomes:
    if isinstance(o, Exception):
        print("failed:", type(o).__name__, o)
    else:
        print("ok:", o["name"], o["roles"])

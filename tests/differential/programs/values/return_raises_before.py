rows = [{"n": 1}, {"m": 2}]
return sum(r["n"] for r in rows)

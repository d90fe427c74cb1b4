parse = lambda s: datetime.datetime.strptime(s, "%Y-%m-%d").date()
rows = await query("select name, since from customers")
months = [f"{parse(r['since']):%B}" for r in rows]
return {"months": months, "sorted": sorted(rows, key=lambda r: parse(r["since"]))[0]["name"]}

rows = await echo([{"id": n, "text": "x" * 50} for n in range(2000)])
print(len(rows), rows[-1]["id"], sum(len(r["text"]) for r in rows))

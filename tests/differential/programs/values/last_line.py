rows = await query("select amount from orders where status = 'paid'")
amounts = [r["amount"] for r in rows]
{"n": len(amounts), "mean": sum(amounts) / len(amounts), "set": None}

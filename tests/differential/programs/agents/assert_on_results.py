rows = await query("select status, count(*) n from orders group by status")
counts = {r["status"]: r["n"] for r in rows}
assert counts["paid"] == 4, counts
assert None not in counts, f"orders without a status: {counts[None]}"

from datetime import datetime
from collections import defaultdict
sums = defaultdict(float)
for r in await query("select day, amount from orders"):
    d = datetime.strptime(r["day"], "%Y-%m-%d")
    sums[f"{d.year}-Q{(d.month - 1) // 3 + 1}"] += r["amount"]
print(dict(sums))

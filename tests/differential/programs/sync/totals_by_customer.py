import csv

totals = {}
skipped = []
with open("orders.csv", newline="", encoding="utf-8") as f:
    for row in csv.DictReader(f):
        try:
            totals[row["customer"]] = totals.get(row["customer"], 0) + float(row["amount"])
        except ValueError as e:
            skipped.append((row["id"], str(e)))

for name, total in sorted(totals.items(), key=lambda kv: -kv[1]):
    print(f"{name:<12}{total:>10.2f}")
print("skipped:", skipped)

rows = open("orders.csv", encoding="utf-8").read().splitlines()
with open("orders.csv", "w", encoding="utf-8") as f:
    f.write("\n".join(r for r in rows if "void" not in r) + "\n")
print(len(rows))

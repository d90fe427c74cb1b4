import csv, json
with open("orders.csv", encoding="utf-8", newline="") as f:
    rows = [{k: v or None for k, v in row.items()} for row in csv.DictReader(f)]
with open("orders.json", "w", encoding="utf-8") as f:
    json.dump(rows, f, ensure_ascii=False, indent=1)
print(len(rows), os.path.getsize("orders.json"))

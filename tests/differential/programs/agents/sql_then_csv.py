import csv, io
rows = await query("select c.name, sum(o.amount) total from orders o join customers c on c.id = o.customer group by 1 order by 2 desc")
buffer = io.StringIO()
w = csv.DictWriter(buffer, fieldnames=rows[0].keys()); w.writeheader(); w.writerows(rows)
open("totals.csv", "w", encoding="utf-8").write(buffer.getvalue())
print(buffer.getvalue())

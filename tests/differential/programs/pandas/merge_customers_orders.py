import pandas as pd
customers, orders = map(pd.DataFrame, await asyncio.gather(query("select * from customers"), query("select * from orders")))
m = orders.merge(customers, left_on="customer", right_on="id", how="left", suffixes=("_order", ""), indicator=True)
print(m[["id_order", "name", "amount", "_merge"]].to_string(index=False))
print(m.groupby("country", dropna=False)["amount"].sum())

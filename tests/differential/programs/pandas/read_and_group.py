import pandas as pd
df = pd.read_csv("orders.csv")
df["amount"] = pd.to_numeric(df["amount"].str.replace(",", ""), errors="coerce")
df["day"] = pd.to_datetime(df["day"], errors="coerce")
print(df.dtypes)
print(df.groupby("customer")["amount"].agg(["count", "sum"]).round(2))
print(df[df.day.isna()][["id", "customer"]])

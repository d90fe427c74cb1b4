import pandas as pd
df = pd.DataFrame(await query("select day, amount from orders where amount > 50"))
df["day"] = pd.to_datetime(df["day"])
df["label"] = df["day"].apply(lambda d: d.strftime("%d %b"))
return df[["label", "amount"]].to_dict(orient="records")

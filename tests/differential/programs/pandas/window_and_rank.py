import pandas as pd
df = pd.DataFrame({"t": list("aabbb"), "v": [3, 1, 5, 5, 2]})
df["rank"] = df.groupby("t")["v"].rank(method="dense", ascending=False).astype(int)
df["cum"] = df.groupby("t")["v"].cumsum()
df["share"] = df["v"] / df.groupby("t")["v"].transform("sum")
print(df.round(2))

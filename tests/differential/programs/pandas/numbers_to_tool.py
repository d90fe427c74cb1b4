import pandas as pd
df = pd.DataFrame({"n": [1, 2, 3]})
got = await echo({"sum": df["n"].sum(), "mean": df["n"].mean(), "rows": df.to_dict(orient="records"), "list": df["n"].tolist()})
print(got)

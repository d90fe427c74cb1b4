import pandas as pd
df = pd.DataFrame({"name": ["a", "b"], "amount": [1, 2]})
print(df["name"].tolist())
print(df["Amount"].sum())

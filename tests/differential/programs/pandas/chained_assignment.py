import pandas as pd, warnings
warnings.simplefilter("ignore")
df = pd.DataFrame({"a": [1, 2, 3]})
sub = df[df.a > 1].copy()
sub["a"] = 0
df.loc[df.a == 1, "a"] = 100
print(df.a.tolist(), sub.a.tolist())

import pandas as pd, numpy as np
df = pd.DataFrame({"x": [1, np.nan, 3], "y": ["a", None, "c"]})
print(df.isna().sum().to_dict(), df.fillna({"x": 0, "y": "?"}).values.tolist(), df.dropna().shape)
print(df["x"].interpolate().tolist(), df["x"].mean())

import pandas as pd
df = pd.DataFrame({"y": [2024, 2024, 2025], "q": [1, 2, 1], "v": [1.5, 2.5, 3.5]}).set_index(["y", "q"])
print(df.loc[2024], df.xs(1, level="q")["v"].sum())
print(df.unstack())

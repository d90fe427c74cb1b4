import pandas as pd
ages = pd.Series([5, 17, 30, 64, 80])
groups = pd.cut(ages, [0, 18, 65, 120], labels=["child", "adult", "senior"])
print(groups.value_counts().sort_index(), groups.cat.codes.tolist(), pd.qcut(ages, 2).nunique())

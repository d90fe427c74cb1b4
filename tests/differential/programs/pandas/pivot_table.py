import pandas as pd
df = pd.DataFrame({"region": ["n", "s", "n", "s"], "product": ["a", "a", "b", "b"], "sales": [10, 20, 30, 40]})
p = df.pivot_table(index="region", columns="product", values="sales", aggfunc="sum", margins=True)
print(p)
p.to_csv("pivot.csv")

import pandas as pd, io
df = pd.DataFrame({"i": range(1000), "c": pd.Categorical(["a", "b"] * 500)})
b = io.StringIO(); df.info(buf=b, memory_usage=False)
print(b.getvalue())
print(df.query("i % 250 == 0 and c == 'a'")["i"].tolist(), df.sample(2, random_state=1)["i"].tolist())

import pandas as pd
df = pd.DataFrame({"a": [1], "b": ["<x>"]})
print(df.to_html(index=False), df.to_json(orient="split"), df.to_csv(sep="\t", index=False))

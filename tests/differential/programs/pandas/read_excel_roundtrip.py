import pandas as pd
df = pd.DataFrame({"n": [1, 2], "text": ["ä", "b"]})
df.to_excel("book.xlsx", index=False, sheet_name="Data")
back = pd.read_excel("book.xlsx", sheet_name="Data")
print(back.equals(df), back.dtypes.astype(str).tolist())

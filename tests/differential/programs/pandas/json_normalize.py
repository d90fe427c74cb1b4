import pandas as pd
people = json.load(open("people.json", encoding="utf-8"))
df = pd.json_normalize([p for p in people if p["address"]])
print(df.columns.tolist())
print(df[["name", "address.city"]].to_string())

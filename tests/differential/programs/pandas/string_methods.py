import pandas as pd
s = pd.Series(["Ada Lovelace", "björn borg", None, "CHEN"])
print(s.str.title().tolist(), s.str.split().str[0].tolist(), s.str.contains("a", case=False, na=False).tolist(), s.str.len().tolist())

import pandas as pd
idx = pd.date_range("2025-01-01", periods=90, freq="D")
s = pd.Series(range(90), index=idx)
monthly = s.resample("MS").agg(["sum", "mean"])
print(monthly)
print(s.rolling(7).mean().iloc[6:9].tolist(), s.index[0].day_name())

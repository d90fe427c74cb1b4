import pandas as pd
s = pd.Series({"x": 1, "y": 4})
{"mean": s.mean(), "max": s.idxmax(), "n": s.count()}

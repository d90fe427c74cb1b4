import pandas as pd
df = pd.DataFrame({"a": [1, 2], "b": [0.5, 1.5]})
df

import pandas as pd
a = pd.DataFrame({"id": [1]}); b = pd.DataFrame({"key": [1]})
a.merge(b, on="id")

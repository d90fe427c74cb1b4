import pandas as pd
df = pd.read_csv("orders.csv")
pd.to_datetime(df["day"], format="%Y-%m-%d")

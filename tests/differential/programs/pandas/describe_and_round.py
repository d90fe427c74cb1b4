df = pd.DataFrame({"a": [1.0, 2.5, 4.0, 10.25], "b": list("xyxy")})
print(df.describe().round(3))
print(df["b"].value_counts().to_dict(), df.shape, df.columns.tolist())

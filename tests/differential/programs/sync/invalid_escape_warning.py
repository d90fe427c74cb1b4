path = "C:\data"
print(path, len(path), 1 is 1)

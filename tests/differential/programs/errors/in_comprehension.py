words = ["a", None, "c"]
print([w.upper()
       for w in words])

count = 3
print("found " + count + " rows")

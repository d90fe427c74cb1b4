out = open("rows.txt", "w")
for value in ["1", "2", "three"]:
    out.write(f"{int(value)}\n")

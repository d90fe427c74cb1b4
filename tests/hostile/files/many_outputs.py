# Leaves 2,000 small files at the top.
for f in range(2000):
    with open(f"f{f}.txt", "w") as file:
        file.write("x")

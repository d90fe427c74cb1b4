import os
for name in ("a", "bb"):
    with open(name + ".txt", "w") as f:
        f.write(name * 100)
for root, dirs, files in os.walk("."):
    for f in sorted(f for f in files if f.endswith(".txt")):
        print(os.path.join(root, f), os.stat(os.path.join(root, f)).st_size)

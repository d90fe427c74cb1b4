import weakref
class Store:
    pass
def save(path, rows):
    with open(path, "w") as f:
        f.write("\n".join(rows))
s = Store()
rows = ["a"]
weakref.finalize(s, save, "store.txt", rows)
rows.append("b")
print("stored later")

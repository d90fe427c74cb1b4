import shelve
with shelve.open("cache", flag="n") as db:
    db["a"] = [1, 2]
    db["b"] = {"x": None}
with shelve.open("cache", flag="r") as db:
    print(sorted(db.keys()), db["b"])
for p in pathlib.Path(".").glob("cache*"):
    p.unlink()

import atexit
counts = {"a": 0}
@atexit.register
def dump():
    with open("counts.json", "w") as f:
        json.dump(counts, f)
    print("dumped", counts)
counts["a"] += 2
print("main done")

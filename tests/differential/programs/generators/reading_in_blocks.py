from functools import partial
with open("notes.txt", "rb") as f:
    sizes = [len(block) for block in iter(partial(f.read, 64), b"")]
print(sizes, sum(sizes))

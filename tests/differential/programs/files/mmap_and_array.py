import array, mmap
a = array.array("d", [1.5, 2.5])
with open("a.bin", "wb") as f:
    a.tofile(f)
with open("a.bin", "r+b") as f, mmap.mmap(f.fileno(), 0) as m:
    m[0:8] = array.array("d", [9.0]).tobytes()
b = array.array("d"); b.frombytes(open("a.bin", "rb").read())
print(b.tolist())

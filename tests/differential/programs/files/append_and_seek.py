with open("log.txt", "w+") as f:
    for n in range(5):
        print(f"line {n}", file=f)
    f.seek(0)
    print(f.readline().strip(), f.tell())
with open("log.txt", "a") as f:
    f.write("last\n")
with open("log.txt", "r+b") as f:
    f.seek(-5, os.SEEK_END)
    print(f.read())
    f.truncate(14)

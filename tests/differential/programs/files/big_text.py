import itertools
with open("numbers.txt", "w") as f:
    f.writelines(f"{n}\n" for n in range(50_000))
total = 0
with open("numbers.txt") as f:
    while chunk := list(itertools.islice(f, 10_000)):
        total += sum(map(int, chunk))
print(total, os.path.getsize("numbers.txt"))

def read(path):
    with open(path) as f:
        yield from f

def parse(lines):
    for line in lines:
        parts = line.split()
        if len(parts) > 6 and parts[2].isupper():
            yield parts[2], int(parts[7].rstrip("ms"))

def running_mean(pairs):
    total = 0
    for n, (level, ms) in enumerate(pairs, 1):
        total += ms
        yield n, level, round(total / n, 1)

for row in running_mean(parse(read("server.log"))):
    print(*row)

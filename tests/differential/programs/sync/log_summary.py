import re
from collections import Counter

levels = Counter()
slowest = (0, "")
pattern = re.compile(r"^(\S+ \S+) (\w+)\s+(\S+) (\w+) (\S+) (\d{3}) (\d+)ms$")
for line in open("server.log"):
    m = pattern.match(line)
    if not m:
        print("unparsed:", repr(line))
        continue
    levels[m[2]] += 1
    slowest = max(slowest, (int(m[7]), m[5]))
print(levels.most_common())
print("slowest", slowest)

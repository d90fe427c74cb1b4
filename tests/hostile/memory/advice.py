# Gives the kernel every advice for every mapping, that of the shared libraries' memory included.
# timeout: 2000
for line in open("/proc/self/maps").read().splitlines():
    begin, end = (int(x, 16) for x in line.split()[0].split("-"))
    for advice in (1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 100, 101):
        if advice not in (18, 9) or "memfd" in line:
            syscall(28, begin, end - begin, advice)
print("here")

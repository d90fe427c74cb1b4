# Maps the server's shared memory of libraries a second time, to write to it (mremap of size 0).
for line in open("/proc/self/maps").read().splitlines():
    bounds, permissions, *_ = line.split()
    begin = int(bounds.split("-")[0], 16)
    if "memfd" in line:
        again = syscall(25, begin, 0, 4096, 1, 0)
        print(permissions, again)
        if again > 0 and "s" in permissions and "w" in permissions:
            print("shared on purpose")

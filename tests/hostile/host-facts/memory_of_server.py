# Looks for the server's keys in its own memory, which is a fork of the server's child.
needles = [bytes(reversed(b"b-yek:bob")), bytes(reversed(b"a-yek:ecila"))]
with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
    for line in maps:
        bounds, permissions, *_ = line.split()
        begin, end = (int(bound, 16) for bound in bounds.split("-"))
        if permissions.startswith("r") and end - begin < 1 << 28 and "vvar" not in line:
            memory.seek(begin)
            data = attempt(memory.read, end - begin) or b""
            if any(data.count(needle) > 4 for needle in needles):
                breach("has a key of the server in memory")

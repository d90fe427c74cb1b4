# Writes over constants and code of the libraries in place, by /proc/self/mem.
import math
memory = open("/proc/self/mem", "rb+", 0)
pi = id(math.pi) + 16
memory.seek(pi)
memory.write(struct.pack("d", 3.0))
done = 0
for line in open("/proc/self/maps").read().splitlines():
    bounds, permissions, *_ = line.split()
    if "r-xp" in permissions and "libpython" in line or "memfd" in line and done < 50:
        memory.seek(int(bounds.split("-")[0], 16))
        done += attempt(memory.write, b"\x00" * 16) or 0

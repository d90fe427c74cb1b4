# Seals memory files in every way, executes one and maps them while it grows them.
fd = os.memfd_create("m", 3)
os.truncate(fd, 1 << 20)
view = mmap.mmap(fd, 1 << 20)
for seal in (0x10, 0x8, 0x4, 0x2, 0x20, 0x1):
    attempt(fcntl.fcntl, fd, fcntl.F_ADD_SEALS, seal)
attempt(os.truncate, fd, 0)
attempt(os.truncate, fd, 1 << 40)
attempt(view.resize, 1 << 30)
view[0] = 1

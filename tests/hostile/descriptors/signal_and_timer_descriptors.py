# Makes descriptors for signals and timers until there are none.
kept = []
for i in range(2000):
    fd = syscall(289, -1, ctypes.c_char_p(b"\xff" * 8), 8, 0) if i % 2 else syscall(283, i % 3, 0)
    if fd < 0:
        break
    if not i % 2:
        syscall(286, fd, 0, ctypes.c_char_p(struct.pack("qqqq", 0, 1000, 0, 1000)), 0)

# Makes pairs of sockets of every family.
for family in range(64):
    for kind in (1, 2, 3, 5):
        pair = (ctypes.c_int * 2)()
        if syscall(53, family, kind, 0, pair) >= 0 and family != 1:
            breach(f"pair of sockets of family {family}")

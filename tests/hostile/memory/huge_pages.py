# Takes huge pages from the machine's reserve.
for flags in (0x40000, 0x40000 | 21 << 26, 0x40000 | 30 << 26):
    address = syscall(9, 0, 1 << 30, 3, 0x22 | flags, -1, 0)
    if address > 0:
        attempt(ctypes.memset, ctypes.c_void_p(address), 1, 2 << 20)
        print("mapped")
fd = syscall(319, b"huge", 4)

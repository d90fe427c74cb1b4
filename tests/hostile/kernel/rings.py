# Has the kernel make calls for it (io_uring), with all sorts of flags.
for flags in (0, 1, 2, 0x40, 0x2000, 0x8000):
    fd = syscall(425, 8, ctypes.c_char_p(struct.pack("IIII", 0, 0, flags, 0) + bytes(104)))
    if fd >= 0:
        breach("made a ring")

# Makes children by the call whose flags no filter sees, also into another control group.
for flags in (0, 0x10000000, 0x8000, 0x200000000, 0x80):
    arguments = ctypes.create_string_buffer(struct.pack("QQQQQ", flags, 0, 0, 0, 17) + bytes(48))
    pid = syscall(435, arguments, 88)
    if pid == 0:
        os._exit(0)
    if pid > 0:
        breach(f"clone3 {flags:#x}")

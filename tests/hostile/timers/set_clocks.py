# Sets the clocks of the machine in every way.
moment = ctypes.c_char_p(struct.pack("qq", 1, 0))
buffer = ctypes.create_string_buffer(struct.pack("Iq", 0x8000, 0) + bytes(256))
for name, result in (("clock_settime", syscall(227, 0, moment)), ("settimeofday", syscall(164, moment, 0)), ("stime", syscall(227, 11, moment)), ("adjtimex", syscall(159, buffer)), ("clock_adjtime", syscall(305, 0, buffer))):
    if result >= 0 and name not in ("adjtimex", "clock_adjtime"):
        breach(f"{name} was done")

# Asks the kernel for lists of mounts, and what each shows.
request = struct.pack("IIQQQ", 32, 0, 0xFFFFFFFFFFFFFFFF, 0, 0)
for number in (457, 458):
    if syscall(number, ctypes.c_char_p(request), ctypes.create_string_buffer(4096), 512, 0) >= 0:
        breach(f"call {number} was done")

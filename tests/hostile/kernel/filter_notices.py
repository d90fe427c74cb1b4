# Decides by a filter of its own what calls of its children do (user notification).
# timeout: 1500
code = ctypes.create_string_buffer(struct.pack("HBBIHBBIHBBIHBBI", 0x20, 0, 0, 0, 0x15, 0, 1, 110, 0x06, 0, 0, 0x7FC00000, 0x06, 0, 0, 0x7FFF0000))
program = struct.pack("HxxxxxxQ", 4, ctypes.addressof(code))
fd = syscall(317, 1, 8, ctypes.c_char_p(program))
if fd >= 0:
    spawn(os.getppid)
    notice = ctypes.create_string_buffer(80)
    fcntl.ioctl(fd, 0xC0502100, notice)
    print("held a child in getppid")

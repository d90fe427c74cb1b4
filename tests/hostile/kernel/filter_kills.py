# A filter of its own lets every further call kill the process, or return nonsense.
# tools: ask
code = ctypes.create_string_buffer(struct.pack("HBBIHBBIHBBIHBBI", 0x20, 0, 0, 0, 0x15, 0, 1, 232, 0x06, 0, 0, 0x00050001, 0x06, 0, 0, 0x7FFF0000))
syscall(317, 1, 0, ctypes.c_char_p(struct.pack("HxxxxxxQ", 4, ctypes.addressof(code))))
await ask()

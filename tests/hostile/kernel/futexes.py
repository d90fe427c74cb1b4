# Makes robust lists, priority inheritance and requeues with nonsense in them.
# timeout: 2000
word = ctypes.c_int(os.getpid())
for operation in range(14):
    for flags in (0, 128, 256):
        pid = spawn(lambda: (signal.setitimer(signal.ITIMER_REAL, 0.005), syscall(202, ctypes.byref(word), operation | flags, 1, 0, ctypes.byref(word), 1)))
        os.waitpid(pid, 0)
head = ctypes.create_string_buffer(24)
struct.pack_into("QqQ", head, 0, ctypes.addressof(head) + 8, 0, 0)
syscall(273, head, 24)
print(syscall(274, 1, ctypes.create_string_buffer(8), ctypes.create_string_buffer(8)))

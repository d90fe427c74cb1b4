# Fills message queues of System V and leaves them.
buffer = ctypes.create_string_buffer(struct.pack("l", 1) + bytes(8192))
for i in range(1000):
    queue = syscall(68, 0, 0o1600)
    if queue < 0:
        break
    while syscall(69, queue, buffer, 8000, 0o4000) == 0:
        pass

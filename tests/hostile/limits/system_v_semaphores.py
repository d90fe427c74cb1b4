# Makes semaphores of System V until there are none, with undo lists, and leaves them.
for i in range(33_000):
    identity = syscall(64, 0, 100, 0o1600)
    if identity < 0:
        break
    syscall(65, identity, ctypes.c_char_p(struct.pack("Hhh", 0, 1, 0x1000)), 1)

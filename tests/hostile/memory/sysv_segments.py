# Makes shared memory of System V until there is none, and leaves it.
# timeout: 3000
made = 0
for i in range(5000):
    identity = syscall(29, 0, 1 << 20, 0o1600)
    if identity < 0:
        break
    address = syscall(30, identity, 0, 0)
    if address > 0:
        ctypes.memset(ctypes.c_void_p(address), 1, 1 << 20)
    made += 1

# Makes a child by vfork that never lets its parent go on.
# timeout: 1000
if syscall(58) == 0:
    while True:
        pass

# Closes all in one call, in all threads at once, and marks the rest close-on-exec.
syscall(436, 3, 0xFFFFFFFF, 2)
syscall(436, 3, 0xFFFFFFFF, 4)
syscall(436, 0, 0xFFFFFFFF, 0)

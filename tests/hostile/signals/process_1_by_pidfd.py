# Sends signals to process 1 by a descriptor of it.
fd = syscall(434, 1, 0)
for number in range(1, 65):
    for flags in (0, 1, 2, 4):
        syscall(424, fd, number, 0, flags)
print("sent")

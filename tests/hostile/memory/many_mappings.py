# Makes as many mappings as the kernel allows.
# timeout: 3000
size = 70_000 * 8192
address = syscall(9, 0, size, 0, 0x22, -1, 0)
for i in range(0, size, 8192):
    if syscall(10, address + i, 4096, 3) < 0:
        break

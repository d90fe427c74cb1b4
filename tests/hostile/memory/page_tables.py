# Touches one page in each gigabyte of a huge mapping, so that page tables take the memory.
# timeout: 4000
size = 1 << 46
address = syscall(9, 0, size, 1, 0x22 | 0x4000, -1, 0)
if address > 0:
    for i in range(0, size, 2 << 20):
        ctypes.c_char.from_address(address + i).value

# Becomes another sort of process: old addresses, no protection, 32 bits.
for value in (0x0008, 0x100000, 0x200000, 0x400000, 0x1000000, 0x4000000, 0x8000000, 0x0040000 | 0x100000, 6):
    if syscall(135, value) >= 0:
        breach(f"personality {value:#x}")

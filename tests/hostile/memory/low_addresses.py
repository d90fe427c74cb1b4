# Maps address 0, where the kernel's mistakes would find it.
for address in (0, 4096, 32768):
    if syscall(9, address, 4096, 7, 0x32, -1, 0) == address:
        breach(f"mapped address {address}")

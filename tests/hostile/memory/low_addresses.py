# Maps address 0, where the kernel's mistakes would find it.
for address in (0, int(open("/proc/sys/vm/mmap_min_addr").read()) - 4096):
    if syscall(9, address, 4096, 7, 0x32, -1, 0) == address:
        breach(f"mapped address {address}")

# Locks memory so that it cannot be reclaimed.
view = mmap.mmap(-1, 64 << 20)
address = ctypes.addressof(ctypes.c_char.from_buffer(view))
for number, arguments in ((149, (address, 64 << 20)), (325, (address, 64 << 20, 1)), (151, (1,)), (151, (3,)), (151, (7,))):
    if syscall(number, *arguments) == 0 and int([line for line in open("/proc/self/status") if line.startswith("VmLck")][0].split()[1]) > 1024:
        breach("memory was locked")
        break

# Loads modules and other kernels, restarts the machine, changes swap.
for number, arguments in ((175, (0, 0, b"")), (313, (0, b"", 0)), (176, (b"overlay", 0)), (246, (0, 0, 0, 0)), (320, (-1, -1, 0, 0, 0)), (169, (0xFEE1DEAD, 672274793, 0x89ABCDEF)), (167, (b"/tmp", 0)), (168, (b"/tmp",)), (163, (0,)), (153, ()), (180, ())):
    if syscall(number, *arguments) >= 0:
        breach(f"call {number} was done")

# Moves the places where the kernel believes its arguments and environment are (PR_SET_MM).
for option in range(1, 16):
    if syscall(157, 35, option, 0x10000, 0, 0) >= 0 and option != 15:
        breach(f"PR_SET_MM {option}")

# Asks whether its descriptors and memory are those of process 1 (kcmp).
for kind in range(8):
    if syscall(312, os.getpid(), 1, kind, 3, 3) >= 0:
        breach(f"compared resource {kind} with process 1")

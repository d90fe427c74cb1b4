# Fills the user's quota of keys.
for i in range(300):
    if syscall(248, b"user", f"k{i}".encode(), bytes(1000), 1000, -3) >= 0 or syscall(250, 1, 0) > 0:
        breach("made a key")

# Leaves files that claim to be terabytes and have no bytes.
for i in range(10):
    with open(f"sparse{i}", "wb") as file:
        attempt(file.truncate, (1 << 28) - i)
        attempt(os.posix_fallocate, file.fileno(), 0, 1 << 40)

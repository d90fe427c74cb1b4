# Fills memory files that no directory shows.
# timeout: 4000
for i in range(100):
    fd = os.memfd_create(f"m{i}")
    for _ in range(64):
        if not attempt(os.write, fd, bytes(1 << 20)):
            break

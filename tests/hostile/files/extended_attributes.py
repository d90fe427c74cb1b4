# Fills memory with extended attributes of files, which no size of a file system counts.
# timeout: 3000
for i in range(2000):
    with open(f"/tmp/x{i}", "w") as file:
        for j in range(20):
            attempt(os.setxattr, file.fileno(), f"user.a{j}", b"x" * 60_000)
            attempt(os.setxattr, file.fileno(), f"security.a{j}", b"x" * 60_000)

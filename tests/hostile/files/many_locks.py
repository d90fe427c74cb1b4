# Takes a hundred thousand locks of bytes.
# timeout: 4000
with open("/tmp/locks", "wb+") as file:
    file.truncate(1 << 20)
    for i in range(100_000):
        if attempt(fcntl.lockf, file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, i * 2) is not None:
            break

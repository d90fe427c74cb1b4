# Fills all three writable directories, whose files are memory, and then memory itself.
# timeout: 5000
for place in ("/mnt/data", "/tmp", "/dev/shm"):
    with attempt(open, f"{place}/.full", "wb", 0) as file:
        while attempt(file.write, bytes(1 << 20)):
            pass
data = []
while True:
    data.append(bytearray(8 << 20))

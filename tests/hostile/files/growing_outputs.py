# A child that survives writes to the files while they are being collected.
def write():
    while True:
        with open("growing", "ab") as file:
            file.write(b"x" * 1000)
        attempt(os.replace, "growing", "other")
for _ in range(3):
    spawn(write)
time.sleep(0.1)

# Prints a byte at a time from many threads until its time is over.
# timeout: 1500
def drip():
    while True:
        os.write(1, b".")
for _ in range(10):
    attempt(threading.Thread(target=drip, daemon=True).start)
drip()

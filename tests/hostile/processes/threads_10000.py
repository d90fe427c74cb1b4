# Starts 10,000 threads.
count = 0
hold = threading.Event()
try:
    for _ in range(10_000):
        threading.Thread(target=hold.wait, daemon=True).start()
        count += 1
except RuntimeError:
    pass
if count > 1000:
    breach(f"{count} threads")

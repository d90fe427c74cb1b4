# Starts as many threads as it can and pauses.
# tools: ask
hold = threading.Event()
try:
    for _ in range(1000):
        threading.Thread(target=hold.wait, daemon=True).start()
except RuntimeError:
    pass
await ask()
hold.set()

# Fills as many pipes as it may have, each as large as it may be, and pauses.
# tools: ask
kept = []
try:
    while True:
        r, w = os.pipe()
        kept += [r, w]
        attempt(fcntl.fcntl, w, 1031, 1 << 20)
        os.set_blocking(w, False)
        while attempt(os.write, w, bytes(1 << 16)):
            pass
except OSError:
    pass
await ask()

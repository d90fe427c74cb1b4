# Makes itself the reaper of its descendants, and never reaps.
syscall(157, 36, 1, 0, 0, 0)
for _ in range(20):
    if attempt(os.fork) == 0:
        attempt(spawn, int)
        os._exit(0)
time.sleep(0.2)

# Opens all descriptors in every process it may have.
# tools: ask
def take():
    try:
        while True:
            os.open("/dev/zero", os.O_RDONLY)
    except OSError:
        time.sleep(60)
for _ in range(20):
    attempt(spawn, take)
time.sleep(0.3)
await ask()

# Threads and children read the channel before the runner does.
# tools: ask
# timeout: 1500
def steal():
    while True:
        for fd in (3, 4):
            if select.select([fd], [], [], 0)[0]:
                attempt(os.read, fd, 1 << 16)
for _ in range(3):
    attempt(spawn, steal)
time.sleep(0.05)
await ask()

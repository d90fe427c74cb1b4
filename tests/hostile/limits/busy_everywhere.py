# Uses all processors with all its processes, also beside a call.
# tools: ask
# timeout: 2000
def run():
    while True:
        pass
for _ in range(20):
    attempt(spawn, run)
await ask()
os.kill(-1, 9)

# Alarms every 100 microseconds whose handler raises, also while it waits for a tool.
# tools: ask
# timeout: 2000
def handler(*_):
    raise RuntimeError("alarm")
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.0001, 0.0001)
while True:
    try:
        print(await ask())
        break
    except RuntimeError:
        pass

# Registers as many watches as its user may have and pauses.
# tools: ask
# timeout: 4000
kept = [os.eventfd(0) for _ in range(400)]
sets = []
try:
    while len(sets) < 500:
        sets.append(select.epoll())
        for fd in kept:
            sets[-1].register(fd)
except OSError:
    pass
await ask()

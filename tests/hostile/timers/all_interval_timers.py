# Interval timers that kill the process while it waits for a tool.
# tools: ask
# pause: 300
for which, delay in ((signal.ITIMER_REAL, 0.2), (signal.ITIMER_VIRTUAL, 0.2), (signal.ITIMER_PROF, 0.2)):
    signal.setitimer(which, delay)
await ask()

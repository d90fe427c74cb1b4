# Slows all processes of its user down.
# tools: ask
for who in (0, 1000, 1, os.getuid()):
    attempt(os.setpriority, os.PRIO_USER, who, 19)
await ask()

# Locks files that others lock, and pauses with the locks held.
# tools: ask
kept = []
for path in ("/etc/passwd", "/usr/bin/env", "/dev/null", "/opt/fermata/__main__.py", os.__file__):
    file = attempt(open, path, "rb")
    kept.append(file)
    attempt(fcntl.flock, file, fcntl.LOCK_EX | fcntl.LOCK_NB)
await ask()

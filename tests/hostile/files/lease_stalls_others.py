# Takes a lease on a file that others open, so that they wait for 45 seconds (F_SETLEASE).
# tools: ask
kept = []
for path in ("/etc/passwd", "/etc/group", "/etc/hosts", "/opt/fermata/__main__.py", "/usr/bin/env"):
    fd = attempt(os.open, path, os.O_RDONLY)
    kept.append(fd)
    if attempt(fcntl.fcntl, fd, fcntl.F_SETLEASE, fcntl.F_WRLCK) is not None:
        breach(f"has a lease on {path}")
await ask()

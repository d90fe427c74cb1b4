# Takes leases and asks for notices on files that others open.
# tools: ask
kept = []
for path in ("/etc/passwd", "/usr/bin/env", "/dev/null", os.__file__, "/usr", "/etc", "/tmp"):
    fd = attempt(os.open, path, os.O_RDONLY)
    kept.append(fd)
    for kind in (fcntl.F_RDLCK, fcntl.F_WRLCK):
        if attempt(fcntl.fcntl, fd, fcntl.F_SETLEASE, kind) is not None:
            breach(f"a lease on {path}")
    attempt(fcntl.fcntl, fd, fcntl.F_NOTIFY, 0x8000003F)
await ask()

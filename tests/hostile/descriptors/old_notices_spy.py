# Watches what other programs and the host read by the old notices of directories (F_NOTIFY).
# tools: ask
# pause: 500
seen = []
for number in (34, 29):
    signal.signal(number, lambda number, _: seen.append(number))
kept = []
for path in ("/usr/bin", "/usr/lib/python3.11", "/usr/lib/x86_64-linux-gnu", "/etc", "/opt/fermata", "/dev"):
    fd = attempt(os.open, path, os.O_RDONLY)
    kept.append(fd)
    attempt(fcntl.fcntl, fd, fcntl.F_SETSIG, 34)
    attempt(fcntl.fcntl, fd, fcntl.F_NOTIFY, 0x80000000 - (1 << 32) | 0x3F)
await ask()
time.sleep(0.1)
if seen:
    breach(f"saw others read files, {len(seen)} times")

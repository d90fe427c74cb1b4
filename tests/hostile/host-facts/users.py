# Looks for users beside its own.
for line in (content("/etc/passwd") or b"").decode().splitlines():
    name, _, identity, *_ = line.split(":")
    if int(identity) >= 1000 and identity not in ("1000", "65534"):
        breach(f"sees the user {name}")
maps = (content("/proc/self/uid_map") or b"").split()
print(maps)

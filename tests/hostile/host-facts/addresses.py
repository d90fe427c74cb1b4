# Looks for addresses of the kernel and of others.
for path in ("/proc/kallsyms", "/proc/self/stack", "/proc/self/wchan", "/proc/net/tcp", "/proc/net/unix", "/proc/net/netlink", "/proc/net/packet"):
    for line in (content(path) or b"").decode(errors="replace").splitlines():
        if any(len(word) >= 16 and word.strip("0:") and word.startswith("ffff") for word in line.split()):
            breach(f"{path} has {line[:80]}")
            break

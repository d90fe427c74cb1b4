# Looks for interfaces, routes, neighbours and connections beside its own.
for path, allowed in (("/proc/net/dev", 3), ("/proc/net/route", 1), ("/proc/net/arp", 1), ("/proc/net/tcp", 1), ("/proc/net/udp", 1), ("/proc/net/fib_trie", 40), ("/proc/net/sockstat", 20)):
    lines = (content(path) or b"").splitlines()
    if len(lines) > allowed:
        breach(f"{path} has {len(lines)} lines")

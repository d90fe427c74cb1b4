# Changes the limits of process 1, so that it fails.
# tools: ask
for limit in (resource.RLIMIT_AS, resource.RLIMIT_DATA, resource.RLIMIT_NOFILE, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE, resource.RLIMIT_STACK):
    if attempt(lambda: resource.prlimit(1, limit, (1 << 10, 1 << 10)) and True):
        breach(f"changed limit {limit} of process 1")
await ask()

# Takes everything away from itself: descriptors, memory, time, file sizes.
# tools: ask
for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC, resource.RLIMIT_STACK, resource.RLIMIT_DATA):
    attempt(resource.setrlimit, limit, (0, resource.getrlimit(limit)[1]))
await ask()

# Raises every limit of its own.
for limit in range(16):
    soft, hard = resource.getrlimit(limit)
    for value in ((resource.RLIM_INFINITY,) * 2, (hard, hard + 1)):
        if hard != resource.RLIM_INFINITY and hard < 1 << 62:
            if attempt(lambda: resource.setrlimit(limit, value) or True):
                breach(f"raised limit {limit} to {value}")

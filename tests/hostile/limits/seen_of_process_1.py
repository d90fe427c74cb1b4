# Reads the limits of process 1.
print([attempt(resource.prlimit, 1, limit) for limit in range(16)])

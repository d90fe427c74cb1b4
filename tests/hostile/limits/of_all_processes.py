# Changes the limits of every process that it can name.
for pid in range(1, 300):
    if pid != os.getpid() and attempt(lambda: resource.prlimit(pid, resource.RLIMIT_CPU, (1, 1)) and True):
        breach(f"changed a limit of process {pid}")

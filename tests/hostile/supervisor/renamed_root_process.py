# Makes children of process 1 that look like the supervisor or the worker, with its command line.
for _ in range(5):
    if attempt(os.fork) == 0:
        if attempt(os.fork) == 0:
            _LIBC.prctl(15, b"python3", 0, 0, 0)
            os.execv("/bin/sleep", ["python3", "60"])
        os._exit(0)

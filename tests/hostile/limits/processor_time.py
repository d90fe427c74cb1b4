# Ends itself by a limit on processor time, in a child and in itself.
# timeout: 3000
attempt(resource.setrlimit, resource.RLIMIT_CPU, (1, 1))
while True:
    pass

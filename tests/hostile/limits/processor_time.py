# Sets a limit on processor time that ends a child, and then itself.
# timeout: 3000
attempt(resource.setrlimit, resource.RLIMIT_CPU, (1, 1))
while True:
    pass

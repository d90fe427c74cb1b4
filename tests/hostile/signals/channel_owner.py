# Has the kernel signal the program for every frame of its supervisor, or kill process 1 for it.
# tools: ask
for fd in (3, 4):
    for owner in (1, os.getpid()):
        attempt(fcntl.fcntl, fd, fcntl.F_SETOWN, owner)
        attempt(fcntl.fcntl, fd, fcntl.F_SETSIG, 23)
        attempt(fcntl.fcntl, fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_ASYNC)
print(await ask())

# Becomes a shell, which has the descriptors of the worker and none of its code.
# tools: ask
for fd in (3, 4):
    attempt(os.set_inheritable, fd, True)
os.execv("/bin/sh", ["sh", "-c", "printf 'garbage' >&3; printf 'garbage' >&4; sleep 1; echo done"])

# Makes itself readable for other processes of its user, or takes that from itself, and calls a tool.
# tools: ask
for value in (1, 2, 0):
    syscall(157, 4, value, 0, 0, 0)
    print(attempt(content, "/proc/self/environ") is None)
await ask()

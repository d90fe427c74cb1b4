# Makes as many inotify instances as its user may have and pauses: the count is the host's.
# tools: ask
made = 0
while syscall(294, 0) >= 0:
    made += 1
print(made)
await ask()

# Makes message queues of POSIX until its user may have no more, and pauses: the bytes are the user's.
# tools: ask
made = 0
for i in range(300):
    if syscall(240, f"q{i}".encode(), 0o102, 0o600, ctypes.c_char_p(struct.pack("llll4l", 0, 10, 8192, 0, 0, 0, 0, 0))) < 0:
        break
    made += 1
print(made)
await ask()

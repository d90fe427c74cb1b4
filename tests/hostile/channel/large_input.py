# Forges one call with an input of 31 MB, which the runner would not let through.
# tools: ask
data = frame("C", b'[{"n":1,"tool":"ask","input":{"x":"' + b"x" * (31 << 20) + b'"}}]')
for fd in (4, 3):
    attempt(os.set_blocking, fd, True)
    attempt(lambda: [os.write(fd, data[i : i + (1 << 16)]) for i in range(0, len(data), 1 << 16)])
time.sleep(1)

# Forges a frame of 940,000 calls on both channels.
# tools: ask
data = frame("C", b"[" + b",".join(b'{"n":%d,"tool":"ask","input":{}}' % i for i in range(880_000)) + b"]")
for fd in (4, 3):
    attempt(os.set_blocking, fd, True)
    attempt(lambda: [os.write(fd, data[i : i + (1 << 16)]) for i in range(0, len(data), 1 << 16)])
time.sleep(1)

# Claims lengths at the limits, each in a process of its own, and holds the rest back.
# timeout: 1000
for length in (0, 1, (32 << 20) - 1, 32 << 20, (32 << 20) + 1, 1 << 31, (1 << 32) - 1):
    send(frame("C", "[" * 100, length))
time.sleep(10)

# Uses all the processor time of its sandbox while it prints, so that the supervisor comes late.
# timeout: 1500
for _ in range(20):
    attempt(spawn, lambda: [None for _ in iter(int, 1)])
while True:
    print("x" * 1000)

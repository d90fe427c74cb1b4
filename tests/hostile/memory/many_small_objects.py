# Fills memory with small objects.
# timeout: 5000
data = []
while True:
    data.append([object() for _ in range(100_000)])

def count(n):
    return 0 if n == 0 else 1 + count(n - 1)
print(count(500))
print(count(100_000))

def depth(n):
    return 1 + depth(n + 1)
try:
    depth(0)
except RecursionError as e:
    print(type(e).__name__, str(e)[:32])

# Recurses without end in Python, in comparison, in representation and in JSON.
sys.setrecursionlimit(1_000_000_000)
def deep(n):
    return deep(n + 1)
deep(0)

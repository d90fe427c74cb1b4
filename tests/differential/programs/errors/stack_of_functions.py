def a(x): return b(x) + 1
def b(x): return c(x) * 2
def c(x):
    y = x - 5
    return 10 / y
print(a(7))
print(a(5))

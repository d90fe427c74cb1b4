from itertools import tee, chain
g = (x * x for x in range(3))
print(sum(g), sum(g))
a, b = tee(range(3))
print(list(chain(a, b, "xy")), dict(zip("ab", g)))

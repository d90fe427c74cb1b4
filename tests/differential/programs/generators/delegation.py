def inner():
    x = yield 1
    yield x * 2
    return "inner done"
def outer():
    result = yield from inner()
    yield result
g = outer()
print(next(g), g.send(21), next(g), next(g, "end"))

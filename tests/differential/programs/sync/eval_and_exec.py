namespace = {"x": 5}
exec("y = x * 2\ndef f(n):\n    return n + y", namespace)
print(namespace["f"](1), eval("x + y", namespace), eval("sum(v for v in (1, 2))"))
exec("z = 3")
print(z + 1)

def make_counter(step=1):
    count = 0
    def add(n=step):
        nonlocal count
        count += n
        return count
    add.reset = lambda: count
    return add
a, b = make_counter(), make_counter(10)
print(a(), a(), b(), a.reset(), b.__closure__[0].cell_contents, [f() for f in [lambda i=i: i * i for i in range(3)]])

def g():
    try:
        yield 1
    except ValueError as e:
        yield f"caught {e}"
    return 7
it = g()
next(it)
print(it.throw(ValueError("x")))
try:
    next(it)
except StopIteration as e:
    print(e.value)

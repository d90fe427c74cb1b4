def rows():
    try:
        yield 1
        yield 2
    finally:
        print("closing rows")
r = rows()
print(next(r))

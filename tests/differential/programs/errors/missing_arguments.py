def report(title, rows, *, footer):
    pass
report("x")

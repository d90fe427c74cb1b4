assert (1 == 2, "never fails")
x = [1, 2]
assert len(x) == 3

def f():
    nonlocal counter
    counter += 1

for name, value in [("a", 1), ("b", 2, 3)]:
    print(name, value)

rows = [[1, 2], [3]]
print([*map(lambda r: r[0], rows)])
print([*map(lambda r: r[1], rows)])

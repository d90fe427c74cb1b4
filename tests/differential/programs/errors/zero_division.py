def mean(values):
    return sum(values) / len(values)

groups = {"a": [1, 2], "b": []}
for name, values in groups.items():
    print(name, mean(values))

values = ["1", "2", "n/a"]
numbers = (int(v) for v in values)
print(next(numbers))
print(sum(numbers))

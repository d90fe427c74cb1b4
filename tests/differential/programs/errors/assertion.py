values = [3, 1, 2]
assert sorted(values) == [1, 2, 3]
assert values == sorted(values), f"not sorted: {values}"

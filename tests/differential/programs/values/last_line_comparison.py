a = [3, 1, 2]
sorted(a) == [1, 2, 3] and "sorted"

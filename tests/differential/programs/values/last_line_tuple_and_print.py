print("shown")
x = 3
x, x * 2, [x] * 2

# Prints ten megabytes without a line end.
print("x" * 10_000_000, end="")

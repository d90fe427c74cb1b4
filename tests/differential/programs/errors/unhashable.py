groups = {}
groups[["a"]] = 1

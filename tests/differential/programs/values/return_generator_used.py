squares = (n * n for n in range(4))
return list(squares), sum(squares)

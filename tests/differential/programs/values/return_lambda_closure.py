factor = 3
fs = [lambda x, k=k: x * k * factor for k in range(3)]
factor = 10
return [f(1) for f in fs]

from itertools import islice, takewhile
def fib():
    a, b = 0, 1
    while True:
        yield a
        a, b = b, a + b
print(list(islice(fib(), 10)), list(takewhile(lambda x: x < 50, fib())), next(x for x in fib() if x > 1000))

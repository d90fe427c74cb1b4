from functools import cache
@cache
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
return {"fib": fib(60), "hits": fib.cache_info().hits}

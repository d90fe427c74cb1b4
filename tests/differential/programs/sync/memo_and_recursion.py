from functools import lru_cache

@lru_cache(maxsize=None)
def ways(amount, coins=(200, 100, 50, 20, 10, 5, 2, 1)):
    if amount == 0:
        return 1
    if amount < 0 or not coins:
        return 0
    return ways(amount - coins[0], coins) + ways(amount, coins[1:])

print([ways(n) for n in (1, 10, 50, 200)])
print(ways.cache_info())

from concurrent.futures import ThreadPoolExecutor
def inverse(x):
    return 1 / x
with ThreadPoolExecutor(2) as pool:
    print(list(pool.map(inverse, [1, 2, 0, 4])))

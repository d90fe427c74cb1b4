from concurrent.futures import ProcessPoolExecutor
import math
def is_prime(n):
    return n > 1 and all(n % i for i in range(2, math.isqrt(n) + 1))
def main():
    with ProcessPoolExecutor(max_workers=2) as ex:
        for n, p in zip((7, 8, 9973), ex.map(is_prime, (7, 8, 9973))):
            print(n, p)
if __name__ == "__main__":
    main()

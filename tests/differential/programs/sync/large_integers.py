import math
n = math.factorial(300)
print(len(str(n)), sum(map(int, str(n))), n % (10 ** 9 + 7))
big = 3 ** 2000
print(big.bit_length(), str(big)[:10], math.isqrt(big) ** 2 <= big)

import random, math
random.seed(7)
inside = sum(math.hypot(random.random(), random.random()) <= 1 for _ in range(20_000))
print(round(4 * inside / 20_000, 4), math.isclose(math.pi, 22 / 7, rel_tol=1e-3), math.comb(10, 3), math.prod([2, 3]), math.gcd(12, 18))

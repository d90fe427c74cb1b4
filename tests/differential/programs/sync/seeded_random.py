import random
r = random.Random(42)
print([r.randint(1, 6) for _ in range(5)], r.choice("abc"), round(r.gauss(0, 1), 6))
random.seed("fixed")
deck = list(range(10)); random.shuffle(deck)
print(deck, random.sample(range(100), 3), random.choices("xy", weights=[9, 1], k=5))

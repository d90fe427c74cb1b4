lines = open("server.log").read().splitlines()
slow = {p[4]: ms for line in lines if len(p := line.split()) > 6 and (ms := int(p[7][:-2])) > 40}
print(slow)
print([y for x in range(6) if (y := x ** 2) % 2], y, [[c for c in w] for w in ("ab", "c")])

class Vector:
    def __init__(self, *xs): self.xs = xs
    def __add__(self, o): return Vector(*(a + b for a, b in zip(self.xs, o.xs)))
    def __mul__(self, k): return Vector(*(a * k for a in self.xs))
    __rmul__ = __mul__
    def __matmul__(self, o): return sum(a * b for a, b in zip(self.xs, o.xs))
    def __eq__(self, o): return isinstance(o, Vector) and self.xs == o.xs
    def __hash__(self): return hash(self.xs)
    def __repr__(self): return f"Vector{self.xs}"
    def __bool__(self): return any(self.xs)
    def __getitem__(self, i): return self.xs[i]
v, w = Vector(1, 2), Vector(3, 4)
print(v + w, 2 * v, v @ w, {v, Vector(1, 2)}, bool(Vector(0, 0)), list(v), v[-1])

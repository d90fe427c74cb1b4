class Countdown:
    def __init__(self, n): self.n = n
    def __iter__(self): return self
    def __next__(self):
        if self.n <= 0: raise StopIteration
        self.n -= 1
        return self.n + 1
    def __len__(self): return self.n
    def __contains__(self, x): return 0 < x <= self.n
    def __reversed__(self): return iter(range(1, self.n + 1))
c = Countdown(3)
print(len(c), 2 in c, list(reversed(c)), list(c), list(c), max(Countdown(5)))

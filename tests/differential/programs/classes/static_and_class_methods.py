class Temp:
    count = 0
    def __new__(cls, *a):
        cls.count += 1
        return super().__new__(cls)
    @classmethod
    def from_text(cls, s): return cls(float(s))
    @staticmethod
    def valid(x): return x > 0
    def __init__(self, v=0): self.v = v
print(Temp.from_text("2.5").v, Temp.valid(-1), Temp().count, Temp.__dict__["valid"].__class__.__name__)

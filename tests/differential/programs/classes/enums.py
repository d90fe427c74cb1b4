from enum import Enum, IntFlag, auto, StrEnum
class Status(StrEnum):
    OPEN = auto()
    PAID = "paid"
    @property
    def final(self): return self is Status.PAID
class Perm(IntFlag):
    R = 4; W = 2; X = 1
print(Status.OPEN, Status("paid").final, [s.name for s in Status], Perm.R | Perm.W, Perm(7) & ~Perm.X, f"{Status.PAID:>6}")
print(Status("lost"))

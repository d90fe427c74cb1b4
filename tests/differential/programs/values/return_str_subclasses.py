from enum import Enum, IntEnum
class S(str, Enum):
    A = "a"
class N(IntEnum):
    B = 2
return [S.A, N.B, True]

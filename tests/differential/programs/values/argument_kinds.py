from collections import Counter, OrderedDict, namedtuple
from enum import Enum
from dataclasses import dataclass
class Color(Enum):
    RED = "red"
@dataclass
class P:
    x: int
    c: Color
print(await echo([Counter("aab"), OrderedDict(z=1), namedtuple("T", "a b")(1, 2), Color.RED, P(1, Color.RED), {"k": (1,)}]))

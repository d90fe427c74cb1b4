from dataclasses import dataclass
@dataclass
class P:
    x: int
return P(1), [P(2)]

from dataclasses import dataclass, field, KW_ONLY, FrozenInstanceError, fields
@dataclass(frozen=True, slots=True)
class Money:
    amount: float
    _: KW_ONLY
    currency: str = "EUR"
m = Money(3)
print(m, hash(m) == hash(Money(3)), [f.name for f in fields(m)])
try:
    m.amount = 4
except FrozenInstanceError as e:
    print(e)
print(Money(1, "USD"))

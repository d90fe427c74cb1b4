from typing import get_type_hints, Literal, TypedDict, NamedTuple, Protocol, runtime_checkable
class Row(TypedDict, total=False):
    id: int
    name: str
class P(NamedTuple):
    x: int
    y: int = 0
@runtime_checkable
class Sized(Protocol):
    def __len__(self) -> int: ...
def f(a: Row, mode: Literal["r", "w"] = "r") -> P: ...
print(get_type_hints(f)["return"].__name__, Row.__optional_keys__ == {"id", "name"}, P(1), isinstance([], Sized))

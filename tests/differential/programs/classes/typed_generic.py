from typing import Generic, TypeVar, Self
T = TypeVar("T")
class Stack(Generic[T]):
    def __init__(self) -> None: self.items: list[T] = []
    def push(self, x: T) -> Self:
        self.items.append(x); return self
    def pop(self) -> T: return self.items.pop()
s = Stack[int]().push(1).push(2)
print(s.pop(), Stack[int].__origin__ is Stack, Stack[str])

from abc import ABC, abstractmethod
import math
class Shape(ABC):
    @abstractmethod
    def area(self): ...
    def __lt__(self, other):
        return self.area() < other.area()
class Circle(Shape):
    def __init__(self, r): self.r = r
    def area(self): return math.pi * self.r ** 2
class Box(Shape):
    def __init__(self, a, b): self.a, self.b = a, b
    def area(self): return self.a * self.b
print([type(s).__name__ for s in sorted([Circle(2), Box(1, 3), Circle(0.5)])])
Shape()

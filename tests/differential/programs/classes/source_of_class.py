import inspect

class Shape:
    """A shape."""
    sides = 0

    def area(self):
        return self.sides

print(inspect.getsource(Shape))
print(inspect.getdoc(Shape), inspect.getsource(Shape.area).count("\n"))

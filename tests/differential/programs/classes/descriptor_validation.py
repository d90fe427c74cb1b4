class Positive:
    def __set_name__(self, owner, name):
        self.name = name
    def __get__(self, obj, owner=None):
        return self if obj is None else obj.__dict__[self.name]
    def __set__(self, obj, value):
        if value <= 0:
            raise ValueError(f"{type(obj).__name__}.{self.name} must be positive, not {value}")
        obj.__dict__[self.name] = value
class Order:
    quantity, price = Positive(), Positive()
    def __init__(self, quantity, price):
        self.quantity, self.price = quantity, price
print(Order(2, 3).price, Order.quantity.name)
Order(1, 0)

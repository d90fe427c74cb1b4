class Singleton(type):
    _instances = {}
    def __call__(cls, *args, **kwargs):
        if cls not in cls._instances:
            cls._instances[cls] = super().__call__(*args, **kwargs)
        return cls._instances[cls]
class Config(metaclass=Singleton):
    def __init__(self, path="x"): self.path = path
a, b = Config("a"), Config("b")
print(a is b, b.path, type(Config).__name__, Config.__module__, Config.__qualname__)

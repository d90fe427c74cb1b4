class Base:
    registry = {}
    def __init_subclass__(cls, /, key=None, **kw):
        super().__init_subclass__(**kw)
        Base.registry[key or cls.__name__.lower()] = cls
    def hello(self):
        return ["base"]
class A(Base):
    def hello(self):
        return ["a", *super().hello()]
class B(Base, key="bee"):
    def hello(self):
        return ["b", *super().hello()]
class C(A, B):
    pass
print(C().hello(), [k.__name__ for k in C.__mro__], sorted(Base.registry))

class Temperature:
    __slots__ = ("_c",)
    def __init__(self, c):
        self.celsius = c
    @property
    def celsius(self):
        return self._c
    @celsius.setter
    def celsius(self, v):
        if v < -273.15:
            raise ValueError(f"{v} is below absolute zero")
        self._c = v
    @property
    def fahrenheit(self):
        return self._c * 9 / 5 + 32
t = Temperature(25)
print(t.fahrenheit)
try:
    t.kelvin = 1
except AttributeError as e:
    print(e)
t.celsius = -300

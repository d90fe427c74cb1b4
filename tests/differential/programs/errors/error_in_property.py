class A:
    @property
    def size(self):
        return self._size
a = A()
print(a.size)

class Record:
    def __init__(self, data): self.__dict__["_d"] = data
    def __getattr__(self, k):
        try:
            return self._d[k]
        except KeyError:
            raise AttributeError(f"no field {k!r}; there are {sorted(self._d)}") from None
    def __setattr__(self, k, v): self._d[k] = v
    def __dir__(self): return self._d
r = Record({"id": 1}); r.name = "x"
print(r.id, r.name, hasattr(r, "z"), dir(r))
r.total

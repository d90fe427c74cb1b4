from functools import cached_property, singledispatch, singledispatchmethod, total_ordering
class Data:
    calls = 0
    @cached_property
    def total(self):
        Data.calls += 1
        return 42
d = Data(); d.total; d.total
@singledispatch
def show(x): return f"object {x}"
@show.register
def _(x: int): return f"int {x}"
@show.register(list)
def _(x): return f"list of {len(x)}"
print(Data.calls, show(1), show([1, 2]), show("s"))

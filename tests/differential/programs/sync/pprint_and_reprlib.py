from pprint import pprint, pformat
import reprlib
data = {"numbers": list(range(30)), "nested": {"a": {"b": ["long text " * 3] * 2}}, "t": (1,)}
pprint(data, width=60, compact=True)
print(reprlib.repr(list(range(100))), pformat({"b": 1, "a": 2}, sort_dicts=False))

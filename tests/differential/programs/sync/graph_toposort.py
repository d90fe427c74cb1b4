from graphlib import TopologicalSorter, CycleError
deps = {"deploy": {"test", "build"}, "test": {"build"}, "build": {"lint"}}
print(list(TopologicalSorter(deps).static_order()))
try:
    list(TopologicalSorter({"a": {"b"}, "b": {"a"}}).static_order())
except CycleError as e:
    print(e.args[0], sorted(set(e.args[1])))

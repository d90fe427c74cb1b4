tree = {"v": 1, "kids": [{"v": 2, "kids": [{"v": 4, "kids": []}]}, {"v": 3, "kids": []}]}
def depth_first(node, level=0):
    yield level, node["v"]
    for kid in node["kids"]:
        yield from depth_first(kid, level + 1)
for level, v in depth_first(tree):
    print("  " * level + str(v))

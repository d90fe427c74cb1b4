from collections import ChainMap, OrderedDict, defaultdict, namedtuple
d = defaultdict(lambda: defaultdict(int))
for w in "the cat the dog a cat".split():
    d[w[0]][w] += 1
print({k: dict(v) for k, v in d.items()})
settings = ChainMap({"debug": True}, {"debug": False, "level": 3})
print(settings["debug"], dict(settings), {1, 2} ^ {2, 3}, frozenset("a") | {"b"} >= {"a"})
o = OrderedDict(a=1, b=2); o.move_to_end("a"); print(o, namedtuple("P", "x y", defaults=[0])(1))

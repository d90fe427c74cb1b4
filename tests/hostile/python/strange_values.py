# Calls with values whose methods lie, raise, change and never end.
# tools: ask
class Number(int):
    def __repr__(self):
        return "1, \"tool\": \"other\""
class Text(str):
    def encode(self, *_):
        return b"\xff"
class Dict(dict):
    def items(self):
        return iter([("x", 1)] * 10)
for value in (Number(5), Text("x"), Dict(a=1), float("inf"), 10**5000, b"x", {1: 2}, {None: 1}, {"\ud800": 1}, object()):
    try:
        print(await ask(x=value))
    except Exception as error:
        print(type(error).__name__)

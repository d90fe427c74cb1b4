def describe(event):
    match event:
        case {"type": "order", "items": [first, *rest], **other}:
            return f"order of {first} and {len(rest)} more, {sorted(other)}"
        case {"type": "login", "user": str(name)} if name:
            return f"login {name}"
        case [x, y] | (x, y):
            return f"pair {x} {y}"
        case int() | float():
            return "number"
        case _:
            return "unknown"
for e in ({"type": "order", "items": ["a", "b"], "id": 1}, {"type": "login", "user": "ada"}, [1, 2], 2.5, {"type": "login", "user": ""}):
    print(describe(e))

match await echo({"kind": "b", "n": 2}):
    case {"kind": "a"}:
        return "a"
    case {"kind": "b", "n": n}:
        return f"b{n}"

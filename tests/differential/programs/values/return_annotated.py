x: int = 1
y: "list[str]"
total: float = x + 0.5
def f(v: int) -> str: return str(v)
return {"total": total, "f": f(x), "hints": list(f.__annotations__)}

x: int = 3
y: "list[int]"
print(__name__, __doc__, __annotations__ if sys.version_info < (3, 14) else {"x": int, "y": "list[int]"})
print(sorted(n for n in dir() if n in ("x", "y")), "x" in vars(), locals() is globals())

# Raises from the bottom of a very deep and wide traceback, in code with misleading names of files.
code = compile("def f(n):\n    return 1 / 0 if n == 0 else f(n - 1)", "/etc/passwd", "exec")
exec(code)
sys.setrecursionlimit(100_000)
f(20_000)

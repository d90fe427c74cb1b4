import traceback, sys
def f():
    g()
def g():
    raise ValueError("deep")
try:
    f()
except ValueError:
    kind, error, tb = sys.exc_info()
    print([ (s.name, s.lineno, s.line) for s in traceback.extract_tb(tb)])
    traceback.print_exc(limit=1, file=sys.stdout)
    print("".join(traceback.format_exception_only(kind, error)), end="")

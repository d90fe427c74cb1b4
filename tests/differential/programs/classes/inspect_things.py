import inspect
def f(a, b: int = 2, *args, c, d=None, **kw) -> str:
    """Doc."""
sig = inspect.signature(f)
print(sig, [p.kind.name for p in sig.parameters.values()][:2], inspect.getsource(f).splitlines()[0], f.__code__.co_firstlineno)
print(inspect.getsourcefile(f) is not None, inspect.getmodule(f) is sys.modules["__main__"], inspect.stack()[0].lineno)

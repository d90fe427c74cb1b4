try:
    await fail("x")
except RuntimeError as e:
    print(type(e).__mro__[1].__name__, e.args, e.code, e.managed, isinstance(e, ToolExecutionError))

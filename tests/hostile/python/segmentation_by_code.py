# Crashes the interpreter by bytecode of its own.
import types
def f():
    pass
code = f.__code__.replace(co_code=bytes([100, 255]) * 50, co_consts=())
types.FunctionType(code, {})()

import inspect
def g():
    step = 1
    yield step
    step = 2
    yield step
it = g()
print(inspect.getgeneratorstate(it)); next(it)
print(inspect.getgeneratorstate(it), it.gi_frame.f_locals, it.gi_frame.f_lineno)
it.close(); print(inspect.getgeneratorstate(it), it.gi_frame)

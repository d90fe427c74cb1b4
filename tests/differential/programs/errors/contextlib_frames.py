from contextlib import contextmanager
@contextmanager
def step(name):
    print("start", name)
    try:
        yield
    finally:
        print("stop", name)
with step("load"):
    open("missing.csv")

from contextlib import contextmanager, suppress, ExitStack, redirect_stdout, closing
import io
@contextmanager
def section(name):
    print("begin", name)
    try:
        yield name.upper()
    finally:
        print("end", name)
with ExitStack() as stack:
    names = [stack.enter_context(section(n)) for n in ("a", "b")]
    print(names)
with suppress(KeyError):
    {}["x"]
buffer = io.StringIO()
with redirect_stdout(buffer):
    print("hidden")
print(repr(buffer.getvalue()))

import functools
def logged(prefix):
    def wrap(f):
        @functools.wraps(f)
        def inner(*args, **kwargs):
            print(prefix, f.__name__, args, kwargs)
            return f(*args, **kwargs)
        return inner
    return wrap
@logged(">>")
def area(w, h=2):
    """Area of a box."""
    return w * h
print(area(3), area(3, h=4), area.__doc__, area.__wrapped__(1))

# Raises an error that is its own cause and context, with a traceback that is a circle.
a, b = ValueError("a"), ValueError("b")
a.__cause__, b.__context__ = b, a
a.__context__, b.__cause__ = b, a
raise a

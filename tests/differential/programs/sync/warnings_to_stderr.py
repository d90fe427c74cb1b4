import warnings
def old():
    warnings.warn("old() is deprecated, use new()", DeprecationWarning, stacklevel=2)
    return 1
print(old())
warnings.warn("careful")
with warnings.catch_warnings(record=True) as w:
    warnings.simplefilter("always")
    old()
    print(len(w), w[0].category.__name__, w[0].lineno)

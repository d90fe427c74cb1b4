import doctest
def double(x):
    """
    >>> double(4)
    8
    >>> double("ab")
    'abab'
    """
    return x * 2
print(doctest.testmod())

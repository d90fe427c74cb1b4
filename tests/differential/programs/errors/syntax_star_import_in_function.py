def f():
    from math import *
    return pi

import gc, weakref
class Node: pass
a, b = Node(), Node(); a.other, b.other = b, a
ref = weakref.ref(a, lambda r: print("collected"))
del a, b
print(ref() is None)
gc.collect()
print(ref() is None)

def bad():
    yield 1
    raise StopIteration
for x in bad():
    print(x)

async for x in [1, 2]:
    print(x)

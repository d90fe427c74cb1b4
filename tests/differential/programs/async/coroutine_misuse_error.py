async def total():
    return 5
value = total()
print(value + 1)

ids = [1, 2, 3]
names = [(await get_user(i))["name"] for i in ids]
lengths = {n: len(n) async for n in (x for x in []) } if False else {n: len(n) for n in names}
print(names, lengths)

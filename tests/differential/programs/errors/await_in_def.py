def load():
    return await get_user(id=1)

print(load())

user = await get_user(id=1)
print(user["name"])
other = await get_user(id=42)
print(other["name"])

user = await get_user(2)
f"{user['name']} has {len(user['roles'])} role"

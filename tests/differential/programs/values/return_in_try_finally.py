try:
    user = await get_user(2)
    return user["name"]
finally:
    print("finished")

async def chain(id):
    user = await get_user(id)
    above = await chain(user["manager"]) if user["manager"] else []
    return [user["name"], *above]
print(" -> ".join(await chain(3)))

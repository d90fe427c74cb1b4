from __future__ import annotations
async def load(id: UserId) -> User:
    return await get_user(id)
user = await load(1)
return user["name"]

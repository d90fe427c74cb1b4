import asyncio
from typing import Any
async def fetch_all(ids: list[int]) -> list[dict[str, Any]]:
    return await asyncio.gather(*(get_user(id=i) for i in ids))
async def main() -> int:
    users = await fetch_all([1, 2])
    admins = [u["name"] for u in users if "admin" in u["roles"]]
    print("admins:", admins)
    return 0
if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))

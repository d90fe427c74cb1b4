class Shop:
    def __init__(self, size): self.size = size
    async def all(self):
        page, out = 1, []
        while page:
            r = await list_orders(page=page, size=self.size)
            out += r["items"]; page = r["next"]
        return out
    async def total(self):
        return sum(i["price"] * i["quantity"] for i in await self.all())
print(await Shop(5).total(), len(await Shop(2).all()))

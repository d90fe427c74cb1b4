class Lazy:
    def __init__(self, id):
        self.id = id
    def __await__(self):
        return get_user(self.id).__await__()
print((await Lazy(2))["name"], [u["id"] for u in await asyncio.gather(Lazy(1), Lazy(3))])

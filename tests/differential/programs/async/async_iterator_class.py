class Pages:
    def __init__(self, size):
        self.page, self.size = 1, size
    def __aiter__(self):
        return self
    async def __anext__(self):
        if self.page is None:
            raise StopAsyncIteration
        answer = await list_orders(page=self.page, size=self.size)
        self.page = answer["next"]
        return [i["id"] for i in answer["items"]]
async for ids in Pages(4):
    print(ids)

async def orders():
    page = 1
    while page is not None:
        answer = await list_orders(page=page, size=4)
        for item in answer["items"]:
            yield item
        page = answer["next"]

by_sku = {}
async for order in orders():
    by_sku.setdefault(order["sku"], []).append(order["id"])
print(json.dumps(by_sku, sort_keys=True))

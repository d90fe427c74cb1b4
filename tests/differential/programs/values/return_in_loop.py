for page in range(1, 10):
    answer = await list_orders(page=page)
    for item in answer["items"]:
        if item["price"] > 10:
            return item

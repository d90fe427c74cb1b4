orders = await list_orders()
for o in orders["items"]:
    print(o["id"], o["total"])

import asyncio

async def main():
    page = 1
    total = 0
    while page:
        answer = await list_orders(page=page)
        for item in answer["items"]:
            total += item["quantity"] * item["price"]
        print("page", page, len(answer["items"]))
        page = answer["next"]
    print("total", total)

if __name__ == "__main__":
    asyncio.run(main())

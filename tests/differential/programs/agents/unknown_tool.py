price = await get_price(symbol="X")

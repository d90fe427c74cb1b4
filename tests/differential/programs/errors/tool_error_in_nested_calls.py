async def a():
    return await b()
async def b():
    return await query("select nothing from nowhere")
await a()

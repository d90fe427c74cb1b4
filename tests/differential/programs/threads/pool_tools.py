from concurrent.futures import ThreadPoolExecutor
import asyncio
def name(id):
    return asyncio.run(get_user(id))["name"]
with ThreadPoolExecutor(3) as pool:
    print(list(pool.map(name, [3, 2, 1])))

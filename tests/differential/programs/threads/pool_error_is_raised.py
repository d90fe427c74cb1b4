import asyncio
from concurrent.futures import ThreadPoolExecutor
ex = ThreadPoolExecutor(4)
futures = [ex.submit(lambda i=i: asyncio.run(get_user(id=i))) for i in (1, 2, 3)]
for f in futures:
    r = f.result()
    print(r["nickname"])

import threading
loop = asyncio.get_running_loop()
def background():
    future = asyncio.run_coroutine_threadsafe(get_user(2), loop)
    return future.result(10)["name"]
print(await asyncio.to_thread(background))

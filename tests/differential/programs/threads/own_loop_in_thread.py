import asyncio, threading
class Background:
    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
    def call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(10)
b = Background()
print(b.call(get_user(id=1))["name"], b.call(asyncio.sleep(0, "slept")))
b.loop.call_soon_threadsafe(b.loop.stop); b.thread.join(5)
print(b.thread.is_alive())

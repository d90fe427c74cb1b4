# Calls tools after the program has ended: from threads, handlers and finalizers.
# tools: ask
import atexit
atexit.register(lambda: attempt(asyncio.run, ask()))
loop = asyncio.get_running_loop()
threading.Thread(target=lambda: (time.sleep(0.1), asyncio.run_coroutine_threadsafe(ask(), loop))).start()

# Runs loops within loops and in threads, all of which call.
# tools: ask
# timeout: 3000
threads = [threading.Thread(target=lambda: asyncio.run(ask(n=i))) for i in range(10)]
for thread in threads:
    thread.start()
print(await asyncio.gather(*(ask(m=i) for i in range(10))))
for thread in threads:
    thread.join()

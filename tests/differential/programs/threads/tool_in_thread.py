import asyncio, threading
found = {}

def look(id):
    found[id] = asyncio.run(get_user(id=id))["name"]

threads = [threading.Thread(target=look, args=(i,)) for i in (1, 2, 3)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(sorted(found.items()))

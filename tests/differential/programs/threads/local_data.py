import threading
data = threading.local()
seen = {}
def work(n):
    data.n = n
    seen[n] = data.n, hasattr(data, "other")
for n in range(2):
    t = threading.Thread(target=work, args=(n,)); t.start(); t.join()
print(seen, hasattr(data, "n"))

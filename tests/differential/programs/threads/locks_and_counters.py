import threading
count, lock = 0, threading.Lock()
def add(n):
    global count
    for _ in range(n):
        with lock:
            count += 1
threads = [threading.Thread(target=add, args=(500,)) for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
print(count)

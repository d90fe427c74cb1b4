import threading, time
sem = threading.BoundedSemaphore(2)
active, most, lock = 0, 0, threading.Lock()
def job():
    global active, most
    with sem:
        with lock:
            active += 1; most = max(most, active)
        time.sleep(0.01)
        with lock:
            active -= 1
ts = [threading.Thread(target=job) for _ in range(5)]
for t in ts: t.start()
for t in ts: t.join()
print(most <= 2, active)

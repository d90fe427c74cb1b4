import queue, threading

jobs = queue.Queue()
results = []
lock = threading.Lock()

def worker():
    while (job := jobs.get()) is not None:
        with lock:
            results.append(job * job)
        jobs.task_done()

threads = [threading.Thread(target=worker) for _ in range(3)]
for t in threads:
    t.start()
for n in range(10):
    jobs.put(n)
jobs.join()
for _ in threads:
    jobs.put(None)
for t in threads:
    t.join()
print(sorted(results), threading.active_count())

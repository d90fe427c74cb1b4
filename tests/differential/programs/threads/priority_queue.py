import queue
q = queue.PriorityQueue()
for item in ((2, "b"), (1, "a"), (3, "c")):
    q.put(item)
print([q.get()[1] for _ in range(3)], q.empty())
try:
    q.get_nowait()
except queue.Empty as e:
    print(type(e).__name__)

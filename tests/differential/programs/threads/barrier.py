import threading
barrier = threading.Barrier(2)
steps = []
def part(name):
    steps.append("before")
    barrier.wait(5)
    steps.append("after")
ts = [threading.Thread(target=part, args=(n,)) for n in "ab"]
for t in ts: t.start()
for t in ts: t.join()
print(steps)

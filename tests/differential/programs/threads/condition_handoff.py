import threading
cond = threading.Condition()
box = []
def give():
    for n in range(3):
        with cond:
            box.append(n)
            cond.notify()
def take(out):
    while len(out) < 3:
        with cond:
            cond.wait_for(lambda: box, timeout=5)
            out.append(box.pop(0))
out = []
t = threading.Thread(target=take, args=(out,)); t.start(); give(); t.join()
print(out)

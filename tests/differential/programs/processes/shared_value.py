import multiprocessing as mp
def add(v, lock):
    for _ in range(50):
        with lock:
            v.value += 1
if __name__ == "__main__":
    ctx = mp.get_context("fork")
    v, lock = ctx.Value("i", 0), ctx.Lock()
    ps = [ctx.Process(target=add, args=(v, lock)) for _ in range(3)]
    [p.start() for p in ps]; [p.join() for p in ps]
    print(v.value)

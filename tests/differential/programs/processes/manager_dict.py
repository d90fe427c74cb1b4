import multiprocessing as mp
def fill(d, k):
    d[k] = k * 2
if __name__ == "__main__":
    ctx = mp.get_context("fork")
    with ctx.Manager() as m:
        d = m.dict()
        ps = [ctx.Process(target=fill, args=(d, k)) for k in "ab"]
        [p.start() for p in ps]; [p.join() for p in ps]
        print(sorted(d.items()))

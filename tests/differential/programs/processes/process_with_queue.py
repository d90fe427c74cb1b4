import multiprocessing as mp
def work(q, n):
    q.put(n * n)
if __name__ == "__main__":
    ctx = mp.get_context("fork")
    q = ctx.Queue()
    ps = [ctx.Process(target=work, args=(q, n)) for n in range(3)]
    for p in ps: p.start()
    print(sorted(q.get() for _ in ps))
    for p in ps: p.join()
    print([p.exitcode for p in ps])

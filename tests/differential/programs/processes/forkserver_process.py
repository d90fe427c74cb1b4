import multiprocessing as mp
def hello(name, conn):
    conn.send(f"hello {name}")
    conn.close()
if __name__ == "__main__":
    ctx = mp.get_context("forkserver")
    a, b = ctx.Pipe()
    p = ctx.Process(target=hello, args=("ada", b))
    p.start()
    print(a.recv())
    p.join()
    print(p.exitcode)

import multiprocessing as mp
def half(x):
    return x / 2 if x < 3 else 1 / 0
if __name__ == "__main__":
    with mp.get_context("fork").Pool(1) as pool:
        try:
            pool.map(half, range(5))
        except ZeroDivisionError as e:
            print("worker failed:", e, type(e.__cause__).__name__)

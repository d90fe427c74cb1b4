from multiprocessing import Pool
def cube(x):
    return x ** 3
if __name__ == "__main__":
    with Pool(2) as p:
        print(p.map(cube, [1, 2, 3]), p.starmap(pow, [(2, 3), (3, 2)]))

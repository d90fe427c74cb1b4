from concurrent.futures import ThreadPoolExecutor

def count_words(path):
    with open(path, encoding="utf-8") as f:
        return path, len(f.read().split())

with ThreadPoolExecutor(max_workers=3) as pool:
    for path, n in pool.map(count_words, ["notes.txt", "server.log", "orders.csv"]):
        print(path, n)

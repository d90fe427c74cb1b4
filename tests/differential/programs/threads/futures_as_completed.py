from concurrent.futures import ThreadPoolExecutor, as_completed
def parse(s):
    return int(s)
with ThreadPoolExecutor() as ex:
    futures = {ex.submit(parse, s): s for s in ("1", "x", "3")}
    out = {}
    for f in as_completed(futures):
        try:
            out[futures[f]] = f.result()
        except ValueError as e:
            out[futures[f]] = str(e)
print(sorted(out.items()))

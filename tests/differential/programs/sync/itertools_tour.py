import itertools as it
print(["".join(p) for p in it.permutations("abc", 2)])
print([(k, len(list(g))) for k, g in it.groupby("aaabbc")])
print(list(it.accumulate([3, 1, 4], max)), list(it.islice(it.count(10, 5), 3)))
print(list(it.batched("abcdefg", 3)) if hasattr(it, "batched") else list(zip(*[iter("abcdef")] * 3)))
print(list(it.zip_longest("ab", "xyz", fillvalue="-")), list(it.pairwise([1, 4, 9])))

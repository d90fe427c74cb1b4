from collections import deque
def windows(it, n):
    w = deque(maxlen=n)
    for x in it:
        w.append(x)
        if len(w) == n:
            yield tuple(w)
print(list(windows([3, 1, 4, 1, 5], 3)), [round(sum(w) / 2, 1) for w in windows([1, 2, 4], 2)])

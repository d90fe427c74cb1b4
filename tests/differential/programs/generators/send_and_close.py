def averager():
    total, count = 0.0, 0
    try:
        while True:
            value = yield total / count if count else None
            total += value
            count += 1
    finally:
        print("closed after", count)

a = averager()
next(a)
print([a.send(x) for x in (10, 20, 60)])
a.close()

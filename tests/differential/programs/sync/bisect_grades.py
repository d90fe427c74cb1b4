import bisect
def grade(score, breakpoints=(60, 70, 80, 90), grades="FDCBA"):
    return grades[bisect.bisect(breakpoints, score)]
print([grade(s) for s in (33, 99, 77, 70, 89, 90, 100)])
ordered = []
for n in (5, 2, 8, 2):
    bisect.insort(ordered, n)
print(ordered)

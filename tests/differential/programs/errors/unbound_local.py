total = 0
def add(n):
    total += n
add(3)

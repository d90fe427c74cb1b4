# Makes children that run out of memory again and again, and outlives them.
# timeout: 4000
def take():
    data = []
    while True:
        data.append(bytearray(8 << 20))
for _ in range(3):
    if pid := attempt(spawn, take):
        attempt(os.waitpid, pid, 0)
print("here")

# Many children take a little memory each, so that no single one is over a limit.
# timeout: 4000
def take():
    data = bytearray(24 << 20)
    for i in range(0, len(data), 4096):
        data[i] = 1
    time.sleep(2)
children = [attempt(spawn, take) for _ in range(20)]
time.sleep(2.5)

# Floods both channels with small frames as fast as it can, from several processes.
# timeout: 1500
def flood():
    for fd in (3, 4):
        attempt(os.set_blocking, fd, True)
    while True:
        send(frame("C", "[]") * 100)
for _ in range(3):
    spawn(flood)
flood()

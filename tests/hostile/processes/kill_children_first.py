# Kills its children while they are being made, from several processes at once.
# timeout: 1500
def kill():
    while True:
        for number in range(2, 200):
            if number not in (os.getpid(), os.getppid()):
                attempt(os.kill, number, 9)
for _ in range(4):
    attempt(spawn, kill)
for _ in range(500):
    attempt(spawn, int)

# Children send SIGCONT to all without end, so that no stop lasts.
# tools: ask
# pause: 1000
# timeout: 3000
diary = Diary()
def bother():
    while True:
        attempt(os.kill, -1, signal.SIGCONT)
        diary.note()
for _ in range(3):
    attempt(spawn, bother)
begin = time.monotonic()
await ask()
diary.check(begin, time.monotonic())
os.kill(-1, signal.SIGKILL)

# A child forks all the time, so that some processes are born while others are being stopped.
# tools: ask
# pause: 1000
diary = Diary()
def run():
    end = time.monotonic() + 20
    while time.monotonic() < end:
        diary.note()
        if os.fork():
            os._exit(0)
for _ in range(8):
    attempt(spawn, run)
begin = time.monotonic()
await ask()
diary.check(begin, time.monotonic())
os.kill(-1, 9)

# Children wake each other by SIGCONT whenever one sees that the other is stopped.
# tools: ask
# pause: 1000
diary = Diary()
def run():
    child = spawn(lambda: [diary.note() for _ in iter(int, 1)])
    while True:
        attempt(os.waitpid, child, os.WUNTRACED)
        attempt(os.kill, child, signal.SIGCONT)
for _ in range(4):
    attempt(spawn, run)
begin = time.monotonic()
await ask()
diary.check(begin, time.monotonic())
os.kill(-1, 9)

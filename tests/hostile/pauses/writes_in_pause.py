# A child changes files while the program waits for a tool.
# tools: ask
# pause: 1000
diary = Diary()
open("/mnt/data/counter", "w").close()
def run():
    while True:
        if written("/mnt/data/counter", "x"):
            diary.note()
spawn(run)
time.sleep(0.1)
begin = time.monotonic()
await ask()
diary.check(begin, time.monotonic())
os.kill(-1, 9)

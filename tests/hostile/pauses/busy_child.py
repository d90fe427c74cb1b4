# A child works on while the program waits for a tool.
# tools: ask
# pause: 1000
diary = Diary()
pid = spawn(lambda: [diary.note() for _ in iter(int, 1)])
time.sleep(0.1)
begin = time.monotonic()
await ask()
diary.check(begin, time.monotonic())
os.kill(pid, 9)

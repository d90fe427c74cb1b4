# Threads work on while the program waits for a tool.
# tools: ask
# pause: 1000
diary = Diary()
for _ in range(5):
    threading.Thread(target=lambda: [diary.note() for _ in iter(int, 1)], daemon=True).start()
begin = time.monotonic()
await ask()
diary.check(begin, time.monotonic())

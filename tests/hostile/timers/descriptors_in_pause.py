# Threads that wait for timer descriptors run in the pause.
# tools: ask
# pause: 1000
diary = Diary()
fd = syscall(283, 1, 0)
syscall(286, fd, 0, ctypes.c_char_p(struct.pack("qqqq", 0, 5_000_000, 0, 5_000_000)), 0)
def run():
    while os.read(fd, 8):
        diary.note()
threading.Thread(target=run, daemon=True).start()
begin = time.monotonic()
await ask()
diary.check(begin, time.monotonic())

# A timer of the program itself sends SIGCONT in the middle of a pause.
# tools: ask
# pause: 1000
event, timer = ctypes.create_string_buffer(64), ctypes.c_int()
struct.pack_into("Qii", event, 0, 0, 18, 0)
syscall(222, 1, event, ctypes.byref(timer))
syscall(223, timer.value, 0, ctypes.c_char_p(struct.pack("qqqq", 0, 0, 0, 400_000_000)), 0)
diary = Diary()
def run():
    while True:
        diary.note()
threading.Thread(target=run, daemon=True).start()
begin = time.monotonic()
await ask()
diary.check(begin, time.monotonic())

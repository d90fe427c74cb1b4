# Children whose timers send them SIGCONT every few milliseconds, so that they run in pauses.
# tools: ask
# pause: 1500
# timeout: 4000
diary = Diary()
def run():
    signal.signal(signal.SIGCONT, lambda *_: diary.note())
    event, timer = ctypes.create_string_buffer(64), ctypes.c_int()
    struct.pack_into("Qii", event, 0, 0, 18, 0)
    for i in range(20):
        syscall(222, 1, event, ctypes.byref(timer))
        syscall(223, timer.value, 0, ctypes.c_char_p(struct.pack("qqqq", 0, 20_000_000, 0, (i + 1) * 1_000_000)), 0)
    while True:
        diary.note()
spawn(run)
time.sleep(0.1)
begin = time.monotonic()
await ask()
diary.check(begin, time.monotonic())
os.kill(-1, 9)

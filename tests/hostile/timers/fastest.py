# Timers of a nanosecond on every clock.
# timeout: 2000
event, timer = ctypes.create_string_buffer(64), ctypes.c_int()
struct.pack_into("Qii", event, 0, 0, 34, 0)
signal.pthread_sigmask(signal.SIG_BLOCK, range(34, 65))
for clock in (0, 1, 2, 3, 7, 8, 9, 11):
    for _ in range(50):
        if syscall(222, clock, event, ctypes.byref(timer)) == 0:
            syscall(223, timer.value, 0, ctypes.c_char_p(struct.pack("qqqq", 0, 1, 0, 1)), 0)
end = time.monotonic() + 0.5
while time.monotonic() < end:
    pass

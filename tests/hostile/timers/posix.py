# Makes thousands of timers and pauses: the count is the user's.
# tools: ask
# timeout: 4000
event = ctypes.create_string_buffer(64)
struct.pack_into("Qii", event, 0, 0, 0, 1)
timer = ctypes.c_int()
made = 0
while made < 30_000 and syscall(222, 1, event, ctypes.byref(timer)) == 0:
    made += 1
if made > 20_000:
    breach(f"{made} timers")
await ask()

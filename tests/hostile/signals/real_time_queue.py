# Fills the queue of signals with blocked ones, and pauses: the count is the user's.
# tools: ask
signal.pthread_sigmask(signal.SIG_BLOCK, range(34, 65))
info = ctypes.create_string_buffer(128)
struct.pack_into("iii", info, 0, 34, 0, -1)
queued = 0
while syscall(129, os.getpid(), 34 + queued % 30, info) == 0 and queued < 200_000:
    queued += 1
if queued > 10_000:
    breach(f"{queued} signals queued")
await ask()

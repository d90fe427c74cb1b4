# Has the interpreter write the numbers of signals to its channels.
# tools: ask
for fd in (3, 4):
    attempt(os.set_blocking, fd, False)
    attempt(signal.set_wakeup_fd, fd, warn_on_full_buffer=False)
    signal.signal(signal.SIGUSR1, lambda *_: None)
    for _ in range(100):
        os.kill(os.getpid(), signal.SIGUSR1)
await ask()

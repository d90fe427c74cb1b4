# A child stops and continues its parent all the time, also while that waits for a tool.
# tools: ask
# timeout: 2000
parent = os.getpid()
def bother():
    while True:
        os.kill(parent, signal.SIGSTOP)
        os.kill(parent, signal.SIGCONT)
spawn(bother)
await ask()
os.kill(-1, signal.SIGKILL)

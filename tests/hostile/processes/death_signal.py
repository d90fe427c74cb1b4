# Asks for signals at the death of its parent, also SIGKILL and SIGCONT, and lets parents die.
for number in (9, 18, 19, 64):
    if attempt(os.fork) == 0:
        child = attempt(os.fork)
        if child == 0:
            syscall(157, 1, number, 0, 0, 0)
            time.sleep(30)
        os._exit(0)
time.sleep(0.1)

# Forks twice, so that a grandchild lives on after the program has ended.
if os.fork() == 0:
    if os.fork() == 0:
        time.sleep(300)
    os._exit(0)
os.wait()

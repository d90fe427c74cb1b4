# Makes a daemon in a session of its own that ignores every signal and holds no descriptor.
if os.fork() == 0:
    os.setsid()
    for number in range(1, 65):
        attempt(signal.signal, number, signal.SIG_IGN)
    if os.fork() == 0:
        os.closerange(0, 1024)
        while True:
            time.sleep(60)
    os._exit(0)
os.wait()

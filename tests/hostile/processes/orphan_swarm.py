# Makes thousands of orphans, each of which outlives its parent by a moment, so that process 1 has to reap them.
end = time.monotonic() + 1
while time.monotonic() < end:
    try:
        if os.fork() == 0:
            if os.fork() == 0:
                time.sleep(0.005)
            os._exit(0)
        os.wait()
    except OSError:
        time.sleep(0.01)

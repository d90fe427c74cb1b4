# Makes children that lock two files in opposite order and wait for ever.
# timeout: 1000
def lock(first, second):
    with open(first, "w") as a, open(second, "w") as b:
        fcntl.flock(a, fcntl.LOCK_EX)
        time.sleep(0.1)
        fcntl.flock(b, fcntl.LOCK_EX)
children = [spawn(lock, "/tmp/a", "/tmp/b"), spawn(lock, "/tmp/b", "/tmp/a")]
os.wait()

# Goes through process numbers as fast as it can, to make them wrap around.
end = time.monotonic() + 1
while time.monotonic() < end:
    pid = attempt(spawn, int)
    if pid:
        os.waitpid(pid, 0)

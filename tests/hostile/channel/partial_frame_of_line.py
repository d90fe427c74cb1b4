# Has the server keep 32 MiB of a frame that never ends.
# timeout: 2000
attempt(os.set_blocking, 4, True)
send(frame("C", "", 32 << 20), 4)
while attempt(os.write, 4, bytes(1 << 16)):
    pass
time.sleep(10)

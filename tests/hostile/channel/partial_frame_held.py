# Has the supervisor keep 32 MiB of a frame that never ends.
# timeout: 2000
os.write(3, frame("C", "", 32 << 20))
sent = 0
while sent < (32 << 20) - 1:
    sent += os.write(3, bytes(1 << 16))
time.sleep(10)

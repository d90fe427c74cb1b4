# Has the supervisor keep 32 MiB of a frame that never ends.
# timeout: 2000
os.write(3, frame("C", "", 32 << 20))
sent = 0
while sent < (32 << 20) - 1:
    sent += os.write(3, bytes(min(1 << 16, (32 << 20) - 1 - sent)))
time.sleep(10)

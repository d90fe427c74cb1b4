# Makes the machine write everything it has, all the time.
# timeout: 1500
end = time.monotonic() + 1
while time.monotonic() < end:
    os.sync()

# Makes the machine write all its buffers to disk, again and again.
# timeout: 1500
end = time.monotonic() + 1
while time.monotonic() < end:
    os.sync()

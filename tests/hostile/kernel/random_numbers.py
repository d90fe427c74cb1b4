# Writes to the kernel's random numbers and reads hundreds of megabytes of them.
# timeout: 2000
with open("/dev/urandom", "rb+", 0) as device:
    attempt(device.write, bytes(1 << 20))
end = time.monotonic() + 0.5
while time.monotonic() < end:
    os.urandom(1 << 20)

# Moves bytes between pipes in a circle, and from files of the system into them.
# timeout: 1500
a, b = os.pipe(), os.pipe()
os.write(a[1], b"x" * 4096)
end = time.monotonic() + 0.7
while time.monotonic() < end:
    os.splice(a[0], b[1], 4096)
    os.splice(b[0], a[1], 4096)
fd = os.open("/usr/bin/env", os.O_RDONLY)
attempt(os.splice, fd, a[1], 4096, offset_src=0)
attempt(os.write, a[1], b"overwritten")

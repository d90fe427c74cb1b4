# Uses the ioctls of terminals, disks and random numbers on the devices that are there.
for path in os.listdir("/dev"):
    fd = attempt(os.open, f"/dev/{path}", os.O_RDWR | os.O_NONBLOCK)
    if fd is None:
        continue
    for request in (0x5412, 0x541D, 0x5413, 0x5423, 0x40045201, 0x40085203, 0x5204, 0x5206, 0x1261, 0x1277):
        if attempt(fcntl.ioctl, fd, request, b"\0" * 64) is not None and request in (0x5412, 0x40085203, 0x5204, 0x5206):
            breach(f"ioctl {request:#x} of {path}")

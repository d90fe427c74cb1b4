# Makes files immutable or append-only, and freezes and trims file systems, by ioctl.
for path in ("/mnt/data", "/tmp", "/", "/usr", "/dev/null"):
    fd = os.open(path, os.O_RDONLY)
    for request in (0x40086602, 0xC0045877, 0xC0045878, 0xC0185879, 0x401C5820, 0x1268, 0x12AC):
        buffer = bytearray(64)
        buffer[0] = 0x30
        if attempt(fcntl.ioctl, fd, request, buffer) is not None and path in ("/", "/usr", "/dev/null"):
            breach(f"ioctl {request:#x} of {path}")

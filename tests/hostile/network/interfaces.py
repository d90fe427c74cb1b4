# Changes interfaces, routes and neighbours by ioctl.
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for request in (0x8914, 0x8916, 0x891C, 0x8922, 0x8924, 0x890B, 0x890C, 0x8955, 0x89A0, 0x89A2, 0x8946, 0x89F0):
    buffer = bytearray(b"lo" + bytes(62))
    buffer[16:18] = b"\x00\x00"
    try:
        fcntl.ioctl(s, request, buffer)
        breach(f"ioctl {request:#x} of an interface")
    except OSError:
        pass

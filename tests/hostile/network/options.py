# Sets the socket options that need rights: device, mark, transparent, repair, upper protocols, priorities.
s = socket.socket()
options = ((1, 25, b"lo\0"), (1, 36, 4), (1, 33, 4), (0, 19, 1), (6, 19, 1), (6, 31, b"tls"), (6, 31, b"espintcp"), (1, 12, 7), (1, 32, 1 << 30), (0, 64, bytes(84)))
for level, option, value in options:
    try:
        s.setsockopt(level, option, value)
        if (level, option) in ((1, 36), (0, 19), (6, 19), (1, 33), (1, 32), (6, 31)):
            breach(f"option {option} of level {level}")
    except OSError:
        pass

# Attaches filters of its own to sockets, classic and extended, thousands of times.
program = b"".join(struct.pack("HBBI", 0x06, 0, 0, 0xFFFF) for _ in range(1))
buffer = ctypes.create_string_buffer(program)
value = struct.pack("HxxxxxxQ", 1, ctypes.addressof(buffer))
kept = []
for _ in range(300):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for option in (26, 50, 51, 52):
        attempt(s.setsockopt, socket.SOL_SOCKET, option, value)
    kept.append(s)

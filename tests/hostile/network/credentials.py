# Pretends to be another user or process towards its own sockets (SCM_CREDENTIALS).
a, b = socket.socketpair()
b.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
for pid, uid, gid in ((1, 0, 0), (os.getpid(), 0, 0), (1, 1000, 1000), (os.getpid(), 1000, 0)):
    if attempt(a.sendmsg, [b"x"], [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, struct.pack("iii", pid, uid, gid))]):
        breach(f"sent the credentials {pid} {uid} {gid}")

# Makes the supervisor hang in close(2) while the program calls over the line and runs in its pauses.
# tools: ask
# pause: 1000
# timeout: 3000
diary, gate = Diary(), socket.create_server(("127.0.0.1", 0))
for _ in range(40):
    full, peer = socket.create_connection(gate.getsockname()), gate.accept()[0]
    full.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3600))
    full.setblocking(False)
    while attempt(full.send, bytes(1 << 18)):
        pass
    attempt(socket.send_fds, socket.socket(fileno=os.dup(3)), [b"\0"], [full.fileno()])
    full.close()
spawn(lambda: [diary.note() for _ in iter(int, 1)])
begin = time.monotonic()
send(frame("C", '[{"n":1,"tool":"ask","input":{}}]'), 4)
select.select([4], [], [], 5)
diary.check(begin, time.monotonic())
os.kill(-1, 9)

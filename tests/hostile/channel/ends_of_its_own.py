# Reports ends of its own, again and again, and runs on.
# timeout: 1000
for report in ({"exit": 0}, {"exit": 10**30}, {"exit": "x", "error": 5}, {"error": "e" * 100_000}, {"exit": -1, "memory": True}, []):
    send(frame("D", json.dumps(report)))
send(frame("X", struct.pack(">I", 2) + b"{}out"))
send(frame("X", struct.pack(">I", 0xFFFFFFFF) + b"{}"))
while True:
    pass

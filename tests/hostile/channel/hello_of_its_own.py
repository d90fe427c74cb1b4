# Says hello as a supervisor would, with states and rounds of its own, and lists files that are not there.
send(frame("H", json.dumps({"protocol": 1, "python": "9", "state": "paused", "round": 99})))
send(frame("M", json.dumps([{"name": "../../etc/passwd", "size": 1, "mtime": 0}])))
send(frame("B", "contents") + frame("N", ""))
time.sleep(0.5)

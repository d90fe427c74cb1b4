# Sends what only servers send: programs, results, kills, stops, and requests for files.
for kind in "AGRKFLTSO":
    send(frame(kind, '{"code":"print(1)","stubs":""}'))
time.sleep(0.5)

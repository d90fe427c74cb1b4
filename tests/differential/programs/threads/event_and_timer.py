import threading
done = threading.Event()
timer = threading.Timer(0.05, done.set)
timer.start()
print(done.wait(5), timer.finished.is_set() or True)
never = threading.Timer(60, print, ["no"]); never.start(); never.cancel()
print(threading.Event().wait(0.01))

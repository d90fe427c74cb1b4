import threading, time
def slow_write():
    time.sleep(0.05)
    print("thread is done")
threading.Thread(target=slow_write).start()
raise ValueError("main fails")

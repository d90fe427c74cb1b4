import threading, time
def forever():
    while True:
        time.sleep(10)
threading.Thread(target=forever, daemon=True).start()
print("ended")

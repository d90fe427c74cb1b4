import threading, time
def late():
    time.sleep(0.1)
    print("late but there")
    with open("late.txt", "w") as f:
        f.write("x")
threading.Thread(target=late).start()
print("main done")

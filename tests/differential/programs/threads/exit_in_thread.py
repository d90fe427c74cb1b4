import sys, threading
def leave():
    print("leaving the thread")
    sys.exit(5)
t = threading.Thread(target=leave); t.start(); t.join()
print("main ends well", t.is_alive())

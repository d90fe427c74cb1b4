# Prints after its end, from threads, exit handlers and children.
import atexit
atexit.register(lambda: print("x" * 5_000_000))
threading.Thread(target=lambda: (time.sleep(0.2), print("late" * 1_000_000))).start()
spawn(lambda: (time.sleep(0.5), os.write(1, b"later")))

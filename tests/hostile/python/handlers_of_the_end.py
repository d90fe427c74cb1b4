# Registers exit handlers that register themselves again.
# timeout: 1500
import atexit
def again():
    atexit.register(again)
again()
print("end")

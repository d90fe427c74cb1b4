def work():
    raise KeyboardInterrupt
try:
    work()
except KeyboardInterrupt:
    print("stopped by user")

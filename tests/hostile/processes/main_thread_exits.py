# Ends its first thread only, so that the process looks like a zombie and runs on.
# timeout: 1000
def run():
    while True:
        time.sleep(0.01)
threading.Thread(target=run, daemon=True).start()
syscall(60, 0)

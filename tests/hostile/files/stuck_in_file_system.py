# Waits in calls that a signal cannot end: opening FIFOs, reading its own pipes, from many threads.
# timeout: 1000
os.mkfifo("/tmp/fifo")
for _ in range(20):
    attempt(threading.Thread(target=open, args=("/tmp/fifo",)).start)
open("/tmp/fifo")

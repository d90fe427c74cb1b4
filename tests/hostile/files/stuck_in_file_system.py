# Waits in calls of the file system from many threads: opening pipes that nobody reads.
# timeout: 1000
attempt(os.mkfifo, "/tmp/fifo")
r, w = os.pipe()
os.close(r)
for _ in range(20):
    threading.Thread(target=os.open, args=(f"/proc/self/fd/{w}", os.O_WRONLY), daemon=True).start()
os.open(f"/proc/self/fd/{w}", os.O_WRONLY)

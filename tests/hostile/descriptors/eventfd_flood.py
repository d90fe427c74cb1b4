# Counts an event descriptor to its end and blocks on it from many threads.
# timeout: 1000
fd = os.eventfd(0)
os.eventfd_write(fd, (1 << 64) - 2)
for _ in range(30):
    attempt(threading.Thread(target=os.eventfd_write, args=(fd, 1), daemon=True).start)
os.eventfd_write(fd, 1)

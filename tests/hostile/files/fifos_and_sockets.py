# Leaves things that block whoever opens them.
os.mkfifo("fifo.txt")
listener = socket.socket(socket.AF_UNIX)
listener.bind("socket.txt")
for mode in (stat.S_IFBLK, stat.S_IFCHR):
    if attempt(os.mknod, f"device{mode}", mode | 0o666, os.makedev(1, 3)) is None and os.path.exists(f"device{mode}"):
        breach("made a device")

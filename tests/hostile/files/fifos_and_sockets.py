# Leaves things that block whoever opens them: FIFOs, sockets, devices.
if attempt(lambda: os.mkfifo("fifo.txt") or True):
    print("made a FIFO")
listener = socket.socket(socket.AF_UNIX)
listener.bind("socket.txt")
for mode in (stat.S_IFBLK, stat.S_IFCHR):
    if attempt(lambda: os.mknod(f"device{mode}", mode | 0o666, os.makedev(1, 3)) or True):
        breach("made a device")

# Waits for a child that executes a FIFO, and for one that opens it.
# timeout: 1000
os.mkfifo("/tmp/fifo")
os.chmod("/tmp/fifo", 0o755)
subprocess.run(["/bin/sh", "/tmp/fifo"])

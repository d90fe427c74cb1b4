# A child in vfork waits where no stop reaches it, while the program calls.
# tools: ask
# pause: 300
# timeout: 2000
os.mkfifo("/tmp/fifo")
os.chmod("/tmp/fifo", 0o755)
threading.Thread(target=subprocess.run, args=(["/bin/sh", "-c", "exec /tmp/fifo"],), daemon=True).start()
await ask()
os._exit(0)

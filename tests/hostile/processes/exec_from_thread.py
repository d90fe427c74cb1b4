# Executes another program from a thread while others run.
for _ in range(5):
    threading.Thread(target=lambda: [None for _ in iter(int, 1)], daemon=True).start()
threading.Thread(target=os.execv, args=("/bin/sh", ["sh", "-c", "echo replaced"])).start()
time.sleep(5)

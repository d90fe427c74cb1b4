# A child waits in vfork, where no signal reaches its parent, while the program calls.
# tools: ask
# pause: 300
# timeout: 2000
r, w = os.pipe()
os.close(r)
hold = [(os.POSIX_SPAWN_OPEN, 5, f"/proc/self/fd/{w}", os.O_WRONLY, 0)]
for _ in range(3):
    threading.Thread(target=os.posix_spawn, args=("/bin/true", ["true"], {}), kwargs={"file_actions": hold}, daemon=True).start()
time.sleep(0.1)
await ask()
os._exit(0)

# A child kills the program while it waits for a tool.
# tools: ask
# pause: 300
parent = os.getpid()
spawn(lambda: (time.sleep(0.005), os.kill(parent, 9)))
await ask()

# Children stop themselves before the pause, which must neither hinder it nor be forgotten after it.
# tools: ask
# pause: 200
children = [spawn(lambda: (os.kill(os.getpid(), signal.SIGSTOP), time.sleep(30))) for _ in range(3)]
print(await ask(), await ask())

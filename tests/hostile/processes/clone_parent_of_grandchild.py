# A child makes a sibling, so that the program itself gets a child it does not know.
if os.fork() == 0:
    pid = syscall(56, 0x8000, 0, 0, 0, 0)
    os._exit(0)
time.sleep(0.1)
print(attempt(os.wait), attempt(os.wait))

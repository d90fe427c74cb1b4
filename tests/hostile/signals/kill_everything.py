# Kills every process that it may signal.
os.kill(-1, signal.SIGKILL)

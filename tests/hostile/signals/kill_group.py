# Kills its process group, which must be its own sandbox's.
os.kill(0, signal.SIGKILL)

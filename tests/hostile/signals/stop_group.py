# Stops its process group for ever.
# timeout: 1000
os.kill(0, signal.SIGSTOP)

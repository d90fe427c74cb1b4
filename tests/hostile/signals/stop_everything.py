# Stops every process that it may signal, then itself.
# timeout: 1000
os.kill(-1, signal.SIGSTOP)
os.kill(os.getpid(), signal.SIGSTOP)

# Stops itself (SIGSTOP), so that it can neither end nor answer.
# timeout: 1000
os.kill(os.getpid(), signal.SIGSTOP)

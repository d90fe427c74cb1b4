# Ignores and blocks every signal there is and runs on.
# timeout: 1000
for number in range(1, 65):
    attempt(signal.signal, number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
while True:
    pass

import os, signal
got = []
signal.signal(signal.SIGUSR1, lambda n, frame: got.append(signal.Signals(n).name))
os.kill(os.getpid(), signal.SIGUSR1)
print(got, signal.getsignal(signal.SIGTERM) == signal.SIG_DFL, signal.getsignal(signal.SIGINT) is signal.default_int_handler)

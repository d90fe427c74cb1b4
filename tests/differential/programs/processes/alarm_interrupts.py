import signal, time
class Late(Exception):
    pass
def on_alarm(n, frame):
    raise Late(f"line {frame.f_lineno}")
signal.signal(signal.SIGALRM, on_alarm)
signal.setitimer(signal.ITIMER_REAL, 0.05)
try:
    time.sleep(5)
except Late as e:
    print("interrupted at", e)

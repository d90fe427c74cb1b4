# Makes itself the first to run: nice, real time, deadlines.
if attempt(os.nice, -10) is not None:
    breach("has a better nice value")
for policy in (os.SCHED_FIFO, os.SCHED_RR):
    if attempt(lambda: os.sched_setscheduler(0, policy, os.sched_param(1)) or True):
        breach("runs in real time")
if syscall(314, 0, ctypes.c_char_p(struct.pack("IIQiIQQQ", 48, 6, 0, 0, 0, 10**7, 10**8, 10**8)), 0) >= 0:
    breach("has a deadline")
if syscall(251, 1, 0, 1 << 13) >= 0:
    breach("has real-time disk priority")

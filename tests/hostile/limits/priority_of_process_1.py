# Makes process 1 the last to run: nice, idle policy, one processor, idle disk.
# tools: ask
if attempt(lambda: os.setpriority(os.PRIO_PROCESS, 1, 19) or True):
    breach("niced process 1")
if attempt(lambda: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0)) or True):
    breach("made process 1 idle")
if attempt(lambda: os.sched_setaffinity(1, {0}) or True):
    breach("moved process 1")
if syscall(251, 1, 1, 3 << 13) >= 0:
    breach("set the disk priority of process 1")
if syscall(314, 1, ctypes.c_char_p(struct.pack("IIQiIQQQ", 48, 5, 0, 0, 0, 0, 0, 0)), 0) >= 0:
    breach("set scheduling attributes of process 1")
await ask()

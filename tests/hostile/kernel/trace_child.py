# Traces its own child, to have it make calls that the filter would not let through.
pid = spawn(time.sleep, 1)
if syscall(101, 16, pid, 0, 0) >= 0:
    breach("traces a child")

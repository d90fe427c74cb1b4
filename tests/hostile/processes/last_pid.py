# Sets the number of the next process (ns_last_pid), to take the number of another one.
for value in ("1", "2", "32767", "4194303", "-1"):
    written("/proc/sys/kernel/ns_last_pid", value)
    pid = attempt(spawn, int)
    print(pid)

# Says which number the next process is to get (ns_last_pid), to be the successor of another one.
for value in ("1", "2", "32767", "4194303", "-1"):
    written("/proc/sys/kernel/ns_last_pid", value)
    pid = attempt(spawn, int)
    print(pid)

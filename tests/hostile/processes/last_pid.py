# Says which number the next process is to get (ns_last_pid), to be the successor of another one.
for value in ("1", "2", "32767", "4194303", "-1"):
    attempt(lambda: open("/proc/sys/kernel/ns_last_pid", "w").write(value))
    pid = attempt(spawn, int)
    print(pid)

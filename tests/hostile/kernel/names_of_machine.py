# Renames the machine and its domain.
name = os.uname()
for number in (170, 171):
    if syscall(number, b"hostile", 7) >= 0:
        breach(f"call {number} was done")
if attempt(lambda: open("/proc/sys/kernel/hostname", "w").write("hostile")):
    breach("wrote the host name")

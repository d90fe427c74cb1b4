# Renames the machine and its domain.
name = os.uname()
for number in (170, 171):
    if syscall(number, b"hostile", 7) >= 0:
        breach(f"call {number} was done")
if written("/proc/sys/kernel/hostname", "hostile"):
    breach("wrote the host name")

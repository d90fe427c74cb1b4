# Handles page faults itself, to hold the kernel at any place (userfaultfd).
for flags in (0, 1, 0x800):
    if syscall(323, flags) >= 0:
        breach("handles page faults")
if attempt(os.open, "/dev/userfaultfd", os.O_RDWR) is not None:
    breach("opened /dev/userfaultfd")

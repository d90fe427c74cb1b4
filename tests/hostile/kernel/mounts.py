# Mounts, unmounts and moves file systems, by the old calls and the new ones.
for number, arguments in ((165, (b"none", b"/tmp", b"tmpfs", 0, 0)), (165, (b"/", b"/tmp", 0, 4096, 0)), (165, (0, b"/", 0, 0x21, 0)), (166, (b"/proc", 2)), (155, (b"/tmp", b"/tmp")), (161, (b"/tmp",)),
                          (430, (b"tmpfs", 0)), (428, (-100, b"/", 1)), (429, (-100, b"/tmp", -100, b"/mnt", 0)), (442, (-100, b"/", 0, bytes(32), 32)), (433, (-100, b"/", 0)), (467, (-100, b"/", 1, bytes(32), 32))):
    if syscall(number, *arguments) >= 0:
        breach(f"call {number} was done")

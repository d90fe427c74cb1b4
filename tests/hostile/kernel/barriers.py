# Interrupts all processors all the time (membarrier).
# timeout: 2000
end = time.monotonic() + 0.5
while time.monotonic() < end:
    for command in (1, 2, 4, 8, 16):
        syscall(324, command, 0, 0)

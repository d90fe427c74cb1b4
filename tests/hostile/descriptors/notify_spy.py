# Watches what other programs and the host open and execute.
# tools: ask
# pause: 500
fd = syscall(294, 0x800)
for path in (b"/usr/bin", b"/usr/lib/python3.11", b"/usr/lib", b"/etc", b"/dev", b"/opt/fermata"):
    syscall(254, fd, path, 0x20)
attempt(os.read, fd, 1 << 16)
await ask()
if fd >= 0 and attempt(os.read, fd, 1 << 16):
    breach("saw others open files")

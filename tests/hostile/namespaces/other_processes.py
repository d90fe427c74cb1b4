# Looks for processes beside its own.
for name in os.listdir("/proc"):
    if name.isdigit() and int(name) not in (1, os.getpid()):
        text = content(f"/proc/{name}/cmdline") or b""
        if content(f"/proc/{name}/status") and b"\nPPid:\t1" not in content(f"/proc/{name}/status") and f"PPid:\t{os.getpid()}".encode() not in content(f"/proc/{name}/status"):
            breach(f"sees process {name} {text[:100]}")

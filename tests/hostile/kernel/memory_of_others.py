# Reads and writes the memory of process 1 and of its own child, by calls and by files.
pid = spawn(time.sleep, 1)
buffer = ctypes.create_string_buffer(64)
vector = struct.pack("QQ", ctypes.addressof(buffer), 64)
for number in (310, 311):
    for target in (1, pid):
        if syscall(number, target, ctypes.c_char_p(vector), 1, ctypes.c_char_p(vector), 1, 0) >= 0:
            breach(f"call {number} for {target}")
for name in ("mem", "maps", "environ", "auxv", "syscall", "stack", "smaps", "pagemap", "root/etc/passwd"):
    if content(f"/proc/1/{name}"):
        breach(f"read /proc/1/{name}")

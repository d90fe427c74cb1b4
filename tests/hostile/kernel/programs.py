# Loads programs into the kernel (bpf), and counts its events (perf).
for command in range(40):
    if syscall(321, command, ctypes.create_string_buffer(128), 128) >= 0:
        breach(f"bpf command {command}")
for kind in range(8):
    if syscall(298, ctypes.c_char_p(struct.pack("IIQ", kind, 128, 0) + bytes(112)), 0, -1, -1, 0) >= 0:
        breach(f"perf event of type {kind}")

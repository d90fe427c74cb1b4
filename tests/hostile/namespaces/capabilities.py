# Takes capabilities, ambient ones too, and keeps them over an exec.
header = ctypes.create_string_buffer(struct.pack("Ii", 0x20080522, 0))
data = ctypes.create_string_buffer(b"\xff" * 24)
if syscall(126, header, data) >= 0:
    breach("took capabilities")
for capability in range(41):
    if syscall(157, 47, 2, capability, 0, 0) >= 0:
        breach(f"raised capability {capability}")
syscall(157, 28, 0x2F, 0, 0, 0)
if "0000000000000000" not in subprocess.run(["grep", "CapEff", "/proc/self/status"], capture_output=True, text=True).stdout:
    breach("a child has capabilities")

# Changes its segment table, its ports and its registers.
for function in (0, 1, 2, 0x11):
    if syscall(154, function, ctypes.create_string_buffer(64), 16) >= 0:
        breach(f"modify_ldt {function:#x}")
if syscall(172, 3) >= 0 or syscall(173, 0, 1024, 1) >= 0:
    breach("has input and output ports")
for code in (0x1001, 0x1002, 0x1003, 0x1011, 0x1012, 0x1021, 0x1022, 0x1023, 0x2001, 0x4001, 0x4002, 0x5001):
    pid = spawn(syscall, 158, code, 0)
    os.waitpid(pid, 0)

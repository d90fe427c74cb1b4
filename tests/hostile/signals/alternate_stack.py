# Has signals delivered on a stack that is not there.
stack = struct.pack("QiiQ", 0x1000, 0, 0, 1 << 20)
print(syscall(131, ctypes.c_char_p(stack), 0))
_LIBC.signal(10, ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda number: None))
os.kill(os.getpid(), 10)
os.kill(os.getpid(), 11)

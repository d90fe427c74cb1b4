# Handles its own segmentation faults by going on, for ever.
# timeout: 1000
signal.signal(signal.SIGSEGV, signal.SIG_IGN)
handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda number: None)
_LIBC.signal(11, handler)
ctypes.string_at(0)

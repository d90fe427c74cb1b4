# Makes calls by the 32-bit entry of the kernel, where numbers mean other things.
view = mmap.mmap(-1, 4096, prot=7)
view.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")  # getpid, number 20
function = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(view)))
pid = os.fork()
if pid == 0:
    if function() == os.getpid():
        breach("the 32-bit entry answers")
    os._exit(0)
print(os.waitpid(pid, 0)[1])

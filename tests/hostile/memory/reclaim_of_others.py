# Has the pages of process 1 thrown out (process_madvise, process_mrelease).
fd = syscall(434, 1, 0)
vector = struct.pack("QQ", 0x400000, 4096)
for advice in (4, 8, 20, 21):
    if syscall(440, fd, ctypes.c_char_p(vector), 1, advice, 0) >= 0:
        breach("advice for the memory of process 1")
if syscall(448, fd, 0) == 0:
    breach("memory of process 1 released")

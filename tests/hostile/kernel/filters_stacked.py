# Installs filters of system calls upon its own until there is no room.
# timeout: 4000
code = (ctypes.c_char * 8 * 4000)()
for i in range(4000):
    code[i][:] = struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000)
program = struct.pack("HxxxxxxQ", 4000, ctypes.addressof(code))
installed = 0
while installed < 2000 and syscall(317, 1, 0, ctypes.c_char_p(program)) == 0:
    installed += 1
print(installed)

import os
r, w = os.pipe()
pid = os.fork()
if pid == 0:
    os.write(w, b"child")
    os._exit(4)
_, status = os.waitpid(pid, 0)
print(os.read(r, 10), os.waitstatus_to_exitcode(status))

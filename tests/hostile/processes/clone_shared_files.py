# A process that shares its table of descriptors closes them under the program's hands (CLONE_FILES).
# timeout: 1000
pid = syscall(56, 0x400 | 17, 0, 0, 0, 0)
if pid == 0:
    os.closerange(3, 1024)
    os._exit(0)
time.sleep(0.1)
print("here")

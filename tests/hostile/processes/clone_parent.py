# Makes a sibling instead of a child (CLONE_PARENT), which the maker of workers would have to reap.
pid = syscall(56, 0x8000 | 17, 0, 0, 0, 0)
if pid == 0:
    os._exit(0)
if pid > 0:
    breach("made a process that is the child of somebody else")

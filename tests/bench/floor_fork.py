"""Floor: a parent that has imported libraries forks children into namespaces of their own.

The arguments name the libraries. The first line of output names those that are not
installed. For every byte on standard input the parent makes one child. The child writes "c"
to standard output and ends; when it is gone, the parent writes "p".
"""

import ctypes
import importlib
import os
import signal
import sys

# What the server's parent processes import beside the libraries.
STANDARD = ("asyncio", "json")

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

SYS_CLONE = {"x86_64": 56, "aarch64": 220}[os.uname().machine]


def clone(flags: int) -> int:
    """Fork into new namespaces; like os.fork, it runs the interpreter's hooks around it."""
    # PyDLL keeps the interpreter's lock, as a fork must.
    libc = ctypes.PyDLL(None, use_errno=True)
    api = ctypes.pythonapi
    api.PyOS_BeforeFork()
    pid: int = libc.syscall(ctypes.c_long(SYS_CLONE), ctypes.c_ulong(flags | signal.SIGCHLD), None, None, None, None)
    if pid == 0:
        api.PyOS_AfterFork_Child()
        return 0
    api.PyOS_AfterFork_Parent()
    if pid < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"clone into namespaces: {os.strerror(error)}")
    return pid


def main() -> None:
    """Import the libraries, then make a child for each byte of standard input."""
    missing = []
    for name in (*STANDARD, *sys.argv[1:]):
        try:
            importlib.import_module(name)
        except ImportError:
            missing.append(name)
    os.write(1, f"{' '.join(missing)}\n".encode())
    flags = CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP
    if os.geteuid() != 0:
        flags |= CLONE_NEWUSER
    while os.read(0, 1):
        pid = clone(flags)
        if pid == 0:
            os.write(1, b"c")
            os._exit(0)
        os.waitpid(pid, 0)
        os.write(1, b"p")


if __name__ == "__main__":
    main()

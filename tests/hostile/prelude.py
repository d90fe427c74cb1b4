"""The beginning of every hostile Python program. The tests put it in front."""
import ctypes, errno, fcntl, gc, json, mmap, os, platform, resource, select, signal, socket, stat, struct, subprocess, sys, tempfile, threading, time

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.syscall.restype = ctypes.c_long


def breach(what):
    """Report that the program has got what it must not get, which fails the test."""
    os.write(1, f"\nBREACH: {what}\n".encode())


def syscall(number, *arguments):
    """Make a system call by its number on x86-64. Return an error as a negative number."""
    if platform.machine() != "x86_64":
        sys.exit("the numbers of system calls are those of x86-64")
    given = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = _LIBC.syscall(ctypes.c_long(number), *given)
    return -ctypes.get_errno() if result == -1 else result


def attempt(function, *arguments, **names):
    """Return what the function returns, or None if it raises."""
    try:
        return function(*arguments, **names)
    except Exception:
        return None


def content(path):
    """Return the first bytes of a file, or None."""
    try:
        with open(path, "rb", 0) as file:
            return file.read(1 << 16)
    except OSError:
        return None


def written(path, text):
    """Return whether text can be written to an existing file."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        return os.write(descriptor, text if isinstance(text, bytes) else text.encode()) > 0
    except OSError:
        return False
    finally:
        os.close(descriptor)


def frame(kind, payload, length=None):
    """Return a frame as the runner would send it, with a false length if one is given."""
    if isinstance(payload, str):
        payload = payload.encode()
    return struct.pack(">IB", len(payload) if length is None else length, ord(kind)) + payload


def send(data, *descriptors):
    """Write data to these descriptors, by default to the supervisor (3) and to the server (4)."""
    for descriptor in descriptors or (3, 4):
        attempt(os.write, descriptor, data)


def spawn(function, *arguments):
    """Run a function in a child process, which then exits, and return the number of the process."""
    pid = os.fork()
    if pid == 0:
        try:
            function(*arguments)
        finally:
            os._exit(0)
    return pid


class Diary:
    """Shared memory in which processes note each hundredth of a second in which they run."""

    def __init__(self):
        self._slots = mmap.mmap(-1, 1 << 16)

    def note(self):
        self._slots[int(time.monotonic() * 100) % (1 << 16)] = 1

    def check(self, begin, end):
        """Report a breach if a process ran in more than a quarter of the time between begin and end.

        The first third of a second does not count.
        """
        slots = range(int(begin * 100) + 33, int(end * 100) - 10)
        if (ran := sum(self._slots[slot % (1 << 16)] for slot in slots)) > max(10, len(slots) / 4):
            breach(f"ran in {ran} of {len(slots)} hundredths of a second of a pause")

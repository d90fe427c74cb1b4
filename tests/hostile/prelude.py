"""What every Python program of this corpus begins with; the driver puts it in front."""
import ctypes, errno, fcntl, gc, json, mmap, os, platform, resource, select, signal, socket, stat, struct, subprocess, sys, tempfile, threading, time

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.syscall.restype = ctypes.c_long


def breach(what):
    """Say that the program has got what it must not get. The driver fails the test for it."""
    os.write(1, f"\nBREACH: {what}\n".encode())


def syscall(number, *arguments):
    """Make a system call by its number on x86-64. An error is returned as a negative number."""
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
    """Tell whether text can be written to a file that is there."""
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
    """Return a frame as the runner would send it, with another length if one is given."""
    if isinstance(payload, str):
        payload = payload.encode()
    return struct.pack(">IB", len(payload) if length is None else length, ord(kind)) + payload


def send(data, *descriptors):
    """Write data to the supervisor (descriptor 3) and the server (descriptor 4), or to those that are named."""
    for descriptor in descriptors or (3, 4):
        attempt(os.write, descriptor, data)


def spawn(function, *arguments):
    """Run a function in a child process that ends with it, and return its number."""
    pid = os.fork()
    if pid == 0:
        try:
            function(*arguments)
        finally:
            os._exit(0)
    return pid


class Diary:
    """Memory in which processes note every hundredth of a second in which they ran."""

    def __init__(self):
        self._slots = mmap.mmap(-1, 1 << 16)

    def note(self):
        self._slots[int(time.monotonic() * 100) % (1 << 16)] = 1

    def check(self, begin, end):
        """Say so if somebody ran in a quarter of the time between, but for the first third of a second."""
        slots = range(int(begin * 100) + 33, int(end * 100) - 10)
        if (ran := sum(self._slots[slot % (1 << 16)] for slot in slots)) > max(10, len(slots) / 4):
            breach(f"ran in {ran} of {len(slots)} hundredths of a second of a pause")

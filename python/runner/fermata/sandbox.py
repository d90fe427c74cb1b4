"""What the sandboxes of both engines have in common: how a program finds its process."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import struct
from collections.abc import Callable
from typing import Final, NoReturn

from fermata import linux

WORKSPACE: Final = "/mnt/data"
# The user a program sees itself as.
USER: Final = 1000

ENVIRONMENT: Final = {
    "HOME": WORKSPACE,
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "MPLBACKEND": "Agg",
    "MPLCONFIGDIR": "/tmp",
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    # One program has one processor or so; and a process with threads cannot be forked.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TMPDIR": "/tmp",
    "XDG_CACHE_HOME": "/tmp",
}


def serve(name: str, function: Callable[..., object], *args: object) -> NoReturn:
    """Run function and end the process; say what went wrong on stderr."""
    try:
        function(*args)
    except BaseException as error:
        os.write(2, f"{name}: {type(error).__name__}: {error}\n".encode())
        os._exit(1)
    os._exit(0)


class PipeStatus:
    """The worker's exit code, as whoever reaps it writes it into a pipe."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def fileno(self) -> int:
        return self._fd

    def read(self) -> int:
        data = os.read(self._fd, 4)
        # Without a report its writer has died, and the worker with it.
        return int(struct.unpack("i", data)[0]) if len(data) == 4 else -signal.SIGKILL


def report_status(fd: int, code: int) -> None:
    """Write the exit code for a PipeStatus, if anybody is left to read it."""
    try:
        os.write(fd, struct.pack("i", code))
    except BrokenPipeError:
        return


def oom_kills(counter: int | None) -> int:
    """Read the count out of memory.events (cgroup 2) or memory.oom_control (cgroup 1)."""
    if counter is None:
        return 0
    for line in os.pread(counter, 4096, 0).decode().splitlines():
        key, _, value = line.partition(" ")
        if key == "oom_kill":
            return int(value)
    return 0


def take_descriptors(stdout: int, stderr: int, *others: int) -> None:
    """Make these, and an empty stdin, the only descriptors: 1, 2, and from 3 on those that no child inherits."""
    null = os.open("/dev/null", os.O_RDONLY)
    # First out of the way of the numbers they are to have.
    sources = [fcntl.fcntl(fd, fcntl.F_DUPFD, 64) for fd in (null, stdout, stderr, *others)]
    for number, source in enumerate(sources):
        os.dup2(source, number, inheritable=number < 3)
    os.closerange(len(sources), resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def die_first() -> None:
    """Make this process the one that goes when memory runs out."""
    linux.write_file("/proc/self/oom_score_adj", "1000")


def process_status() -> dict[str, str]:
    """Return what the kernel says of this process."""
    text = linux.read_file("/proc/self/status")
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


def verify() -> None:
    """Refuse to run a program where the isolation is not what it should be."""
    found = process_status()
    user = "\t".join([str(USER)] * 4)
    expected = {
        "Uid": user,
        "Gid": user,
        "CapPrm": "0" * 16,
        "CapEff": "0" * 16,
        "CapBnd": "0" * 16,
        "NoNewPrivs": "1",
        "Seccomp": "2",
    }
    for key, value in expected.items():
        if found.get(key) != value:
            raise PermissionError(f"isolation failed: {key} is {found.get(key)!r}, not {value!r}")

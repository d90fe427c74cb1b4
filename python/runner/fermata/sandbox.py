"""What process sandboxes and containers have in common: the state of the process in which a program begins."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import struct
import sys
from collections.abc import Callable
from typing import Final, NoReturn

from fermata import linux

WORKSPACE: Final = "/mnt/data"
# The user id and the group id that a program sees as its own.
USER: Final = 1000

ENVIRONMENT: Final = {
    "HOME": WORKSPACE,
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "MPLBACKEND": "Agg",
    "MPLCONFIGDIR": "/tmp",
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    # A program has about one processor, and a process that will be forked must not have threads.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TMPDIR": "/tmp",
    "XDG_CACHE_HOME": "/tmp",
}


def environment() -> dict[str, str]:
    """Return the environment of a program, in which python3 is this interpreter."""
    directory = os.path.realpath(os.path.dirname(sys.executable))
    if directory in ENVIRONMENT["PATH"].split(":"):
        return dict(ENVIRONMENT)
    return ENVIRONMENT | {"PATH": f"{directory}:{ENVIRONMENT['PATH']}"}


def serve(name: str, function: Callable[..., object], *args: object) -> NoReturn:
    """Run function and end the process. An exception is reported on stderr under this name."""
    try:
        function(*args)
    except BaseException as error:
        os.write(2, f"{name}: {type(error).__name__}: {error}\n".encode())
        os._exit(1)
    os._exit(0)


class PipeStatus:
    """The worker's exit code, which the process that reaps the worker writes to a pipe."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def fileno(self) -> int:
        """Return the end of the pipe, which becomes readable when the worker has ended."""
        return self._fd

    def read(self) -> int:
        """Return the exit code, negative for a signal."""
        data = os.read(self._fd, 4)
        # If there is no exit code, the process that reaps has died, and the worker with it.
        return int(struct.unpack("i", data)[0]) if len(data) == 4 else -signal.SIGKILL


def report_status(fd: int, code: int) -> None:
    """Write the exit code for a PipeStatus, unless its reader has gone."""
    try:
        os.write(fd, struct.pack("i", code))
    except BrokenPipeError:
        return


def oom_kills(counter: int | None) -> int:
    """Return how many processes of a control group the kernel has killed because memory ran out.

    ``counter`` is the open memory.events (cgroup 2) or memory.oom_control (cgroup 1), if there is one.
    """
    if counter is None:
        return 0
    for line in os.pread(counter, 4096, 0).decode().splitlines():
        key, _, value = line.partition(" ")
        if key == "oom_kill":
            return int(value)
    return 0


def take_descriptors(stdout: int, stderr: int, *others: int) -> None:
    """Close all descriptors but these, and renumber them.

    stdin becomes empty, ``stdout`` and ``stderr`` become 1 and 2. The others follow from 3 on, and
    are not inherited by programs that this process executes.
    """
    null = os.open("/dev/null", os.O_RDONLY)
    # The copies are high enough not to be in the way of the final numbers.
    sources = [fcntl.fcntl(fd, fcntl.F_DUPFD, 64) for fd in (null, stdout, stderr, *others)]
    for number, source in enumerate(sources):
        os.dup2(source, number, inheritable=number < 3)
    close_from(len(sources))


def close_from(first: int) -> None:
    """Close all descriptors from this one on, except for the one that ctypes needs."""
    if first <= linux.CALLBACKS:
        os.closerange(first, linux.CALLBACKS)
        first = linux.CALLBACKS + 1
    os.closerange(first, resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def die_first() -> None:
    """Make this process the first one that the kernel kills when memory runs out."""
    linux.write_file("/proc/self/oom_score_adj", "1000")


def process_status() -> dict[str, str]:
    """Return the fields of this process's status in /proc."""
    text = linux.read_file("/proc/self/status")
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


def verify() -> None:
    """Raise PermissionError if this process is not as isolated as a program's process has to be."""
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

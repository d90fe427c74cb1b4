"""Stopping a program for a pause, and checking that it has stopped.

A freezer stops the processes of a cgroup whatever they do. Without a freezer, SIGSTOP stops
them, but a program can arrange to be woken up. So the supervisor checks again and again that
every thread has stopped, and how much processor time the program has used since.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Final, Protocol

# The files in which cgroup 2 and cgroup 1 count the processor time of a container.
_USAGE_FILES: Final = ("/sys/fs/cgroup/cpu.stat", "/sys/fs/cgroup/cpuacct/cpuacct.usage")


class Stopper(Protocol):
    """Stops every process of the sandbox except the supervisor."""

    # Whether a stopped process can wake up by itself, so that it must be watched.
    wakes: bool

    def stop(self) -> None:
        """Begin to stop the processes. Processes that are stopped already stay stopped."""

    def stopped(self) -> bool:
        """Tell whether all processes have stopped."""

    def used(self) -> int:
        """Return the processor time that the processes have used up to now, in nanoseconds."""

    def go(self) -> None:
        """Let the processes continue, or die if they were killed."""


class Freezer:
    """The freezer of the sandbox's cgroup, by its open files."""

    wakes = False

    def __init__(self, control: int, state: int, words: tuple[bytes, bytes], frozen: bytes) -> None:
        """Use two open files of the control group.

        ``control`` takes the ``words`` for freeze and thaw. ``state`` has the line ``frozen``
        when all processes are frozen.
        """
        self._control = control
        self._state = state
        self._freeze, self._thaw = words
        self._frozen = frozen

    @classmethod
    def of(cls, files: Mapping[str, int]) -> Freezer | None:
        """Return the freezer whose files are among these open files, which are keyed by name."""
        if (both := files.get("freezer.state")) is not None:
            return cls(both, both, (b"FROZEN", b"THAWED"), b"FROZEN")
        if (control := files.get("cgroup.freeze")) is not None:
            return cls(control, files["cgroup.events"], (b"1", b"0"), b"frozen 1")
        return None

    def stop(self) -> None:
        os.pwrite(self._control, self._freeze, 0)

    def stopped(self) -> bool:
        return self._frozen in os.pread(self._state, 4096, 0).splitlines()

    def used(self) -> int:
        return 0

    def go(self) -> None:
        os.pwrite(self._control, self._thaw, 0)


class Signals:
    """SIGSTOP and SIGCONT to every process except this one."""

    wakes = True

    def __init__(self, clock: Callable[[], int]) -> None:
        """Use ``clock`` for the processor time that the program has used."""
        self._clock = clock

    def stop(self) -> None:
        signal_all(signal.SIGSTOP)

    def stopped(self) -> bool:
        return all(_fields(task)[0] in b"TtZX" for task in _tasks())

    def used(self) -> int:
        return self._clock()

    def go(self) -> None:
        signal_all(signal.SIGCONT)


def signal_all(number: signal.Signals) -> None:
    """Signal every process of the sandbox except this one."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(-1, number)


def container_clock() -> Callable[[], int]:
    """Return a clock that counts the processor time of all processes of the container except this one."""
    for path in _USAGE_FILES:
        with suppress(OSError, LookupError, ValueError):
            fd = os.open(path, os.O_RDONLY)
            _usage(fd)
            return lambda: _usage(fd) - time.process_time_ns()
    return process_clock


def _usage(fd: int) -> int:
    """Return the nanoseconds in cpuacct.usage or in cpu.stat."""
    words = os.pread(fd, 4096, 0).split()
    return int(words[0]) if len(words) == 1 else 1000 * int(words[words.index(b"usage_usec") + 1])


def process_clock() -> int:
    """Return the processor time of all processes that exist now, and of the children that they have reaped."""
    return sum(sum(map(int, _fields(f"/proc/{pid}/stat")[11:15])) for pid in _others()) * _TICK


_TICK: Final = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def _others() -> list[str]:
    me = str(os.getpid())
    return [name for name in os.listdir("/proc") if name.isdecimal() and name != me]


def _tasks() -> Iterator[str]:
    """Yield the status files of all threads, since a process may run after its first thread has ended."""
    for pid in _others():
        with suppress(FileNotFoundError, ProcessLookupError):
            for task in os.listdir(f"/proc/{pid}/task"):
                yield f"/proc/{pid}/task/{task}/stat"


def _fields(path: str) -> list[bytes]:
    """Return the fields of a thread's status from its state on; a thread that has ended is dead (X)."""
    try:
        fd = os.open(path, os.O_RDONLY)
        try:
            # The name of the process, which comes before the state, may contain anything.
            return os.read(fd, 4096).rpartition(b") ")[2].split()
        finally:
            os.close(fd)
    except (FileNotFoundError, ProcessLookupError):
        return [b"X"]

"""Waits: the timeouts with which threads wait for each other do not count pauses.

The kernel's clocks cannot be stopped, so the functions of the standard library in which threads wait
with a timeout are replaced by others that count by the clock of the program. Importing this module
replaces them; without ``use`` they count as before.
"""

from __future__ import annotations

import concurrent.futures._base
import functools
import queue
import subprocess
import threading
import time
import types
from collections.abc import Callable
from typing import Any, Final, Protocol

_wait: Final = threading.Condition.wait
_join: Final = threading.Thread.join
# A thread that runs out of time in a pause looks this often whether the pause is over, every so many seconds.
# While the program is stopped it does not look. A thread that nothing stops does not count the pause.
_LOOKS: Final = 5
_LOOK: Final = 0.01


class Clock(Protocol):
    """The clock of the program."""

    def time(self) -> float:
        """Return the time in seconds, without the time in which the program was paused."""

    def paused(self) -> tuple[float, bool]:
        """Return for how many seconds the program was paused so far, and whether it is now."""


class _Real:
    """A clock that never stands still."""

    def time(self) -> float:
        return time.monotonic()

    def paused(self) -> tuple[float, bool]:
        return 0.0, False


class _Used:
    """The clock in use."""

    clock: Clock = _Real()


def use(clock: Clock) -> None:
    """Count by this clock from now on."""
    _Used.clock = clock


def _now() -> float:
    return _Used.clock.time()


def _within(timeout: float, wait_for: Callable[[float], bool]) -> bool:
    """Wait for at most so many seconds, and for as long again as the program was paused meanwhile."""
    clock = _Used.clock
    before, _ = clock.paused()
    left, looks = timeout, _LOOKS
    while left > 0:
        if wait_for(min(left, threading.TIMEOUT_MAX)):
            return True
        after, still = clock.paused()
        left, before = after - before, after
        if left <= 0 and still and looks:
            left, looks = _LOOK, looks - 1
    return False


def wait(self: Any, timeout: float | None = None) -> bool:
    """Wait like threading.Condition.wait."""
    if timeout is None or not timeout > 0 or not self._is_owned():
        return _wait(self, timeout)
    # Whoever notifies this thread releases this lock.
    notified = threading.Lock()
    notified.acquire()
    self._waiters.append(notified)
    state = self._release_save()
    came = False
    try:
        came = _within(timeout, functools.partial(notified.acquire, True))
        return came
    finally:
        self._acquire_restore(state)
        if not came and notified in self._waiters:
            self._waiters.remove(notified)


def join(self: Any, timeout: float | None = None) -> None:
    """Wait like threading.Thread.join."""
    try:
        if timeout is None or not timeout > 0:
            return _join(self, timeout)
        _within(timeout, functools.partial(_ended, self))
    except BaseException as error:
        # With a bare raise, the traceback has no line of this module.
        tb = error.__traceback__
        while tb is not None and tb.tb_frame.f_code.co_filename == __file__:
            tb = tb.tb_next
        error.__traceback__ = tb
        raise
    return None


def _ended(thread: threading.Thread, timeout: float) -> bool:
    _join(thread, timeout)
    return not thread.is_alive()


def _replace() -> None:
    module: Any = threading
    module.Condition.wait, module.Thread.join = wait, join
    # These modules find out with a clock how much of a timeout is left.
    module._time = vars(queue)["time"] = vars(subprocess)["_time"] = _now
    clocks = types.ModuleType("time")
    vars(clocks).update(vars(time))
    vars(clocks)["monotonic"] = _now
    vars(concurrent.futures._base)["time"] = clocks


# The functions in which threads wait, as the interpreter runs them.
CODES: Final = frozenset(function.__code__ for function in (_within, _wait, _join))
_replace()

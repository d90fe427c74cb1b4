"""Rest: finds out whether anything could make another call before results arrive.

The program rests when every thread waits. Python has no way to ask what a thread does, so this is
inferred from the innermost function of each thread. The calls of a shell script come from
processes, which are watched by polling.
"""

from __future__ import annotations

import concurrent.futures.thread
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Final

from fermata import waits

# How long a call waits for other threads to rest, in seconds. It is long enough for new threads to
# make their first calls.
_GRACE: Final = 0.02
# How long a call waits at most for other processes to rest, and for threads that get no processor,
# and how often other processes are polled. Both are in seconds.
_PATIENCE: Final = 0.2
_LOOK: Final = 0.0005
# A thread that was woken has begun to run after this time, in seconds, if it gets a processor.
_WAKES: Final = 0.0001


class Rest:
    """Knows which threads wait for results, and finds out what the others do.

    ``lock`` is the lock of the calls.
    """

    def __init__(self, lock: threading.Lock) -> None:
        # Threads whose event loops wait, and those that wait for the result of a call.
        self.idle: set[int] = set()
        # The thread that sends calls to the supervisor, and makes none itself.
        self.courier: threading.Thread | None = None
        # Returns whether the processes that make the calls rest; None if this process makes the calls.
        self.processes: Callable[[], bool] | None = None
        # Notified when a call is made, and when an event loop begins to wait.
        self._changed = threading.Condition(lock)
        self._made = 0
        # The last time when a call was made or results came.
        self._latest = 0.0

    def call_made(self) -> None:
        """Note that a call was made. The caller holds the lock."""
        self._made += 1
        self._latest = time.monotonic()
        self._changed.notify()

    def results_came(self) -> None:
        """Note that results came, after which processes may make more calls."""
        self._latest = time.monotonic()

    def loop_waits(self, waits: bool) -> None:
        """Note that the event loop of this thread begins or stops waiting."""
        if not waits:
            self.idle.discard(threading.get_ident())
            return
        self.idle.add(threading.get_ident())
        with self._changed:
            self._changed.notify()

    def patience(self) -> float:
        """Return how many seconds to wait before processes are polled again, or 0 to stop waiting."""
        if self.processes is None:
            return 0
        left = self._latest + _PATIENCE - time.monotonic()
        return 0 if left <= 0 or self.processes() else min(left, _LOOK)

    def alone(self) -> bool:
        """Tell whether no thread but this one makes calls."""
        return self.processes is not None or threading.active_count() == 1

    def others_rest(self) -> bool:
        """Tell whether every thread but this one waits for something."""
        if self.alone():
            return True
        me = threading.get_ident()
        frames_of = sys._current_frames()
        for thread in threading.enumerate():
            ident = thread.ident
            if ident is None or ident == me or ident in self.idle or thread is self.courier:
                continue
            frame = frames_of.get(ident)
            if frame is not None and not _waits(frame):
                return False
        return True

    def wait_for_others(self) -> bool:
        """Wait until every other thread rests, or until no call has been made for a while.

        Returns whether they rest.
        """
        with self._changed:
            made, grace = self._made, _Grace()
            while True:
                if self.others_rest():
                    # One of the threads may have been woken without having run yet.
                    self._changed.wait(_WAKES)
                    if made == self._made and self.others_rest() and not _others_run():
                        return True
                if made != self._made:
                    made, grace = self._made, _Grace()
                if (left := grace.left()) <= 0:
                    # While this thread waits, threads that wait for the interpreter's lock can run.
                    self._changed.wait(_LOOK)
                    if made == self._made and grace.left() <= 0:
                        return False
                    continue
                # There is no notification when a thread comes to rest without a call.
                self._changed.wait(min(left, _LOOK))


class _Grace:
    """The time that other threads get until they must rest."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._spent = time.process_time()

    def left(self) -> float:
        """Return how many seconds are left."""
        waited = time.monotonic() - self._began
        if waited < _GRACE:
            return _GRACE - waited
        # On a busy machine a thread may not have had a processor yet.
        had_time = time.process_time() - self._spent >= _GRACE
        return 0 if had_time or waited >= _PATIENCE or not _others_run() else _GRACE / 4


def _others_run() -> bool:
    """Tell whether another thread of this process runs, or would if a processor were free."""
    me = str(threading.get_native_id())
    for thread in os.listdir("/proc/self/task"):
        with suppress(OSError), open(f"/proc/self/task/{thread}/stat", "rb") as stat:
            # The name, which comes before the state, may contain anything.
            if thread != me and stat.read().rpartition(b") ")[2].startswith(b"R"):
                return True
    return False


# The function that the threads of a pool run.
_POOL: Final = concurrent.futures.thread._worker.__code__
# The functions in which a thread waits for another one.
_WAITING: Final = waits.CODES | frozenset(
    function.__code__
    for function in (
        getattr(threading.Thread, "_wait_for_tstate_lock", threading.Thread.join),
        concurrent.futures.thread._worker,
        # The main thread waits here for the others when the program has ended.
        threading._shutdown,  # type: ignore[attr-defined]
    )
)


def _waits(frame: FrameType | None) -> bool:
    """Tell whether the thread with this innermost frame waits for another one."""
    if frame is None or frame.f_code not in _WAITING:
        return False
    if frame.f_code is _POOL and (queue := frame.f_locals.get("work_queue")) is not None and queue.qsize():
        # There is work that this thread, or another one of its pool, has not begun yet.
        return False
    while frame is not None:
        if frame.f_code is threading.Thread.start.__code__:
            # The thread waits until a thread that it has just started begins to run.
            return False
        frame = frame.f_back
    return True

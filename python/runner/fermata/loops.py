"""The event loops of the program: when a loop would wait, the program pauses for results."""

from __future__ import annotations

import asyncio
import selectors
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from selectors import SelectorKey
from typing import Any, Final, Protocol

from fermata import lines, waits
from fermata.rest import Rest


class Clock:
    """A monotonic clock that stands still while the program is paused."""

    def __init__(self) -> None:
        self._paused = 0.0
        self._since: float | None = None
        # How many of the seconds in which this clock stood still the timers of event loops count nevertheless.
        self.served = 0.0

    def time(self) -> float:
        """Return the time in seconds, without the time in which the program was paused."""
        since = self._since
        return (time.monotonic() if since is None else since) - self._paused

    def paused(self) -> tuple[float, bool]:
        """Return for how many seconds the program was paused so far, and whether it is now."""
        return self._paused, self._since is not None

    def stop(self) -> None:
        """Begin a pause."""
        self._since = time.monotonic()

    def go(self, served: bool = False) -> None:
        """End a pause. If the server ran the calls meanwhile, event loops count it."""
        if self._since is not None:
            stood = time.monotonic() - self._since
            self._paused += stood
            self._since = None
            if served:
                self.served += stood


class Pausing(Protocol):
    """The methods of Calls that event loops need."""

    clock: Clock
    rest: Rest

    def patience(self) -> float:
        """Return for how many seconds at most waiting calls must be held back, or 0 if they must not."""

    def pause(self, wakes: float | None) -> bool:
        """Pause if the program rests. Return True if the loop may have something to run now.

        The loop has a timer that is due in ``wakes`` seconds, or none.
        """

    def tasks_end(self, tasks: Iterable[asyncio.Task[Any]]) -> None:
        """Do what must be done before the tasks of an event loop that ends are cancelled."""


class _Selector(selectors.DefaultSelector):
    """A selector that pauses the program when its event loop would wait."""

    def __init__(self, calls: Pausing) -> None:
        super().__init__()
        self._calls = calls

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        """Wait like any selector, but first let the program's calls get their results."""
        ready: list[tuple[SelectorKey, int]]
        if timeout is not None and timeout <= 0:
            ready = super().select(timeout)
            return ready
        # Processes are polled before descriptors, so that what a process sent before it came to rest
        # is ready.
        patience = self._calls.patience()
        # Descriptors that are ready now may lead to more calls.
        ready = super().select(0)
        if ready or not patience and self._calls.pause(timeout):
            return ready
        if patience:
            timeout = patience if timeout is None else min(timeout, patience)
        self._calls.rest.loop_waits(True)
        try:
            ready = super().select(timeout)
            return ready
        finally:
            self._calls.rest.loop_waits(False)


class Loop(asyncio.SelectorEventLoop):
    """The event loop of any thread of the program."""

    def __init__(self, calls: Pausing) -> None:
        self.calls = calls
        self._clock = calls.clock
        super().__init__(_Selector(calls))

    def time(self) -> float:
        """Return the program's time, which stands still in a pause."""
        return self._clock.time() + self._clock.served

    def create_task(self, coro: Any, **options: Any) -> asyncio.Task[Any]:
        """Make a task like any loop, and note on which line."""
        try:
            task = super().create_task(coro, **options)
        except BaseException as error:
            # With a bare raise, the traceback has no line of this function.
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
            raise
        lines.note(task, coro)
        return task

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Report an error that nobody handles.

        Not reported are a future of gather that was cancelled with its tasks, and what has ended the program.
        """
        ends = (asyncio.CancelledError, SystemExit, KeyboardInterrupt)
        if "future" not in context or not isinstance(context.get("exception"), ends):
            super().call_exception_handler(context)

    def used(self) -> bool:
        """Tell whether this loop has anything left to do."""
        base: Any = self
        return bool(base._ready or base._scheduled or base._asyncgens or base._default_executor)


_cancel_all: Final[Callable[[asyncio.AbstractEventLoop], None]] = vars(asyncio.runners)["_cancel_all_tasks"]


def _cancel_all_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel the tasks of a loop that ends, as asyncio.run and asyncio.Runner do it."""
    if isinstance(loop, Loop) and (tasks := asyncio.all_tasks(loop)):
        loop.calls.tasks_end(tasks)
    _cancel_all(loop)


vars(asyncio.runners)["_cancel_all_tasks"] = _cancel_all_tasks

if sys.version_info < (3, 13):
    # In some releases, whenever asyncio asks for the handler of SIGINT, which it has set itself, the signal module makes
    # the text of an error that it drops, and that has the text of the task and of its result.
    _enum: Final[Callable[[Any, Any], Any]] = vars(signal)["_int_to_enum"]
    vars(signal)["_int_to_enum"] = lambda value, kind: _enum(value, kind) if isinstance(value, int) else value


@contextmanager
def _no_deprecation() -> Iterator[None]:
    """Suppress the deprecation of event loop policies. They will be removed in Python 3.16."""
    if sys.version_info < (3, 14):
        # To change the filters costs a forked process some pages of memory.
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


with _no_deprecation():
    # A worker inherits this class from its parent, since to make a class costs time and memory.
    class _Policy(asyncio.DefaultEventLoopPolicy):
        def __init__(self, calls: Pausing) -> None:
            super().__init__()
            self._calls = calls
            # The first loop is made now, while nobody waits for it.
            self._ready = [Loop(calls)]

        def new_event_loop(self) -> asyncio.AbstractEventLoop:
            return self._ready.pop() if self._ready else Loop(self._calls)


def install(calls: Pausing) -> None:
    """Make ``asyncio.run`` and its like use Loop, and threads wait by the same clock."""
    waits.use(calls.clock)
    policy = _Policy(calls)
    if sys.version_info < (3, 14):
        # Even a context manager that does nothing costs each forked process some pages of memory.
        asyncio.set_event_loop_policy(policy)
        return
    with _no_deprecation():
        asyncio.set_event_loop_policy(policy)

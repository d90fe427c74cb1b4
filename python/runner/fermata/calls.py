"""Pausing: from tool calls that wait to one batch, and back.

A call is made by awaiting a stub. The program has come to rest when every thread
that could go on waits; then everything that waits for a tool goes out as one
batch, and the process is stopped until the results are here. There is no polling
and no delay in a program of one thread: its event loop tells that it is idle.
Only for what runs in other processes, such as a shell script, it is looked again
and again whether they have come to rest.
"""

from __future__ import annotations

import asyncio
import concurrent.futures.thread
import os
import select
import selectors
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from json import dumps, loads
from selectors import SelectorKey
from types import FrameType
from typing import Any, Final

from fermata import frames, values
from fermata.tools import ToolExecutionError

# How long a call waits for other threads to come to rest, in seconds: long enough
# for threads that have just been started to make their first calls, too.
_GRACE: Final = 0.02
# How long a call waits for other processes, or for threads that want to run and may
# not, to come to rest, which on a busy machine take long; and how often it is looked
# whether other processes have.
_PATIENCE: Final = 0.2
_LOOK: Final = 0.0005
# The most that the calls of one pause may have, in bytes; what remains goes into the next.
MAX_BATCH: Final = 16_000_000

_NO_MESSAGE: Final = "tool execution failed"


class _Call:
    """A call that waits for its result."""

    def __init__(self, number: int, text: bytes, loop: asyncio.AbstractEventLoop) -> None:
        self.number = number
        self.text = text
        self.loop = loop
        self.future: asyncio.Future[Any] = loop.create_future()


class Clock:
    """A monotonic clock that stands still while the program is paused."""

    def __init__(self) -> None:
        self._paused = 0.0
        self._since: float | None = None

    def time(self) -> float:
        """Return seconds in which the program was not paused."""
        since = self._since
        return (time.monotonic() if since is None else since) - self._paused

    def stop(self) -> None:
        """Begin a pause."""
        self._since = time.monotonic()

    def go(self) -> None:
        """End a pause."""
        if self._since is not None:
            self._paused += time.monotonic() - self._since
            self._since = None


class Calls:
    """The calls of one program, and its stream to the supervisor."""

    def __init__(self, stream: socket.socket) -> None:
        self.clock = Clock()
        # Tells whether the processes whose calls these are have come to rest. Without
        # it they are this process's own.
        self.others_rest: Callable[[], bool] | None = None
        # Reads the payload of results.
        self.decode: Callable[[bytes], Iterable[Mapping[str, Any]]] = loads
        self._stream = stream
        self._lock = threading.Lock()
        # Notified when a call is made or a loop comes to rest.
        self._changed = threading.Condition(self._lock)
        self._exchanging = threading.Lock()
        self._waiting: dict[int, _Call] = {}
        self._issued = 0
        # When a call was made, or results came, last.
        self._latest = 0.0
        self._idle: set[int] = set()
        self._courier: threading.Thread | None = None
        self._closed = False

    async def invoke(self, name: str, input: dict[str, Any]) -> Any:
        """Make one call and wait for its result."""
        return await self.request(name, values.encode(input))

    async def request(self, name: str, input: str) -> Any:
        """Make one call, whose input is JSON already, and wait for its result."""
        text = f'"tool":{dumps(name)},"input":{input}}}'.encode()
        loop = asyncio.get_running_loop()
        with self._lock:
            if self._closed:
                raise RuntimeError("the program has ended; no tool can be called any more")
            self._issued += 1
            call = _Call(self._issued, b'{"n":%d,%b' % (self._issued, text), loop)
            self._waiting[call.number] = call
            self._latest = time.monotonic()
            self._changed.notify()
        if not isinstance(loop, Loop):
            # A loop of another make does not tell when it is idle.
            self._call_courier()
        try:
            return await call.future
        finally:
            self._waiting.pop(call.number, None)

    def finish(self, payload: bytes) -> None:
        """Say that the program has ended, once nothing waits for results."""
        with self._exchanging:
            self._stream.sendall(frames.encode(frames.DONE, payload))

    def close(self) -> None:
        """Refuse calls from now on: the main program has ended."""
        with self._lock:
            self._closed = True
            self._waiting.clear()

    def patience(self) -> float:
        """Return how many seconds the calls that wait are to wait for other processes."""
        if self.others_rest is None or not self._waiting:
            return 0
        left = self._latest + _PATIENCE - time.monotonic()
        return 0 if left <= 0 or self.others_rest() else min(left, _LOOK)

    def rest(self) -> bool:
        """Called by a loop that has nothing left to run and would wait.

        Returns True if results arrived, so that there is something to run.
        """
        if not self._waiting:
            return False
        me = threading.get_ident()
        self._idle.add(me)
        try:
            if self._all_rest(me) and self._exchanging.acquire(blocking=False):
                try:
                    self._exchange(resting=True)
                finally:
                    self._exchanging.release()
                if self._waiting and not self._alone():
                    self._call_courier()
                return True
        finally:
            self._idle.discard(me)
        self._call_courier()
        return False

    def resting(self, resting: bool) -> None:
        """Note that the loop of this thread begins or ends to wait."""
        if not resting:
            self._idle.discard(threading.get_ident())
            return
        self._idle.add(threading.get_ident())
        with self._lock:
            self._changed.notify()

    def _all_rest(self, *but: int) -> bool:
        """Whether every other thread waits for something."""
        if self._alone():
            return True
        frames_of = sys._current_frames()
        for thread in threading.enumerate():
            ident = thread.ident
            if ident is None or ident in but or ident in self._idle or thread is self._courier:
                continue
            frame = frames_of.get(ident)
            if frame is not None and not _waits(frame):
                return False
        return True

    def _alone(self) -> bool:
        """Whether no other thread makes calls."""
        return self.others_rest is not None or threading.active_count() == 1

    def _call_courier(self) -> None:
        """See to it that the waiting calls go out although some thread still runs."""
        with self._lock:
            if self._courier is None or not self._courier.is_alive():
                self._courier = threading.Thread(target=self._carry, name="fermata-courier", daemon=True)
                self._courier.start()

    def _carry(self) -> None:
        me = threading.get_ident()
        while True:
            self._await_rest(me)
            with self._exchanging:
                if self._waiting:
                    self._exchange()
            with self._lock:
                if not self._waiting:
                    self._courier = None
                    return

    def _await_rest(self, me: int) -> None:
        """Wait until every thread waits, or until no call has come in for a while."""
        with self._lock:
            issued, grace = self._issued, _Grace()
            while (left := grace.left()) > 0 and not self._all_rest(me):
                self._changed.wait(left)
                if issued != self._issued:
                    issued, grace = self._issued, _Grace()

    def _exchange(self, resting: bool = False) -> None:
        """Send what waits, wait for results, and hand them to their loops.

        What does not rest must be stopped, which is the supervisor's to do.
        """
        batch = self._batch()
        if not batch:
            return
        calls = frames.encode(frames.CALLS, b"[%b]" % b",".join(batch))
        if not resting:
            calls = frames.encode(frames.BUSY, b"") + calls
        self.clock.stop()
        try:
            results = self.decode(self._ask(calls))
        finally:
            self.clock.go()
        self._latest = time.monotonic()
        self._deliver(results)

    def _ask(self, calls: bytes) -> bytes:
        """Send calls and return the payload of their results."""
        # Whatever the program has made of SIGPIPE: the supervisor may be gone.
        self._stream.sendall(calls, socket.MSG_NOSIGNAL)
        # The kernel wakes a thread that waits in recv also when the other end has read the
        # calls; one that waits in select sleeps until there is something to read.
        select.select([self._stream], [], [])
        kind, payload = receive(self._stream)
        if kind != frames.RESULTS:
            raise frames.ProtocolError(f"frame {kind} in place of results")
        return payload

    def _batch(self) -> list[bytes]:
        batch: list[bytes] = []
        size = 1
        for _, call in sorted(self._waiting.items()):
            if batch and size + len(call.text) + 1 > MAX_BATCH:
                break
            if not call.future.done():
                batch.append(call.text)
                size += len(call.text) + 1
        return batch

    def _deliver(self, results: Iterable[Mapping[str, Any]]) -> None:
        for result in results:
            call = self._waiting.pop(result["n"], None)
            if call is None:
                continue
            try:
                here = asyncio.get_running_loop() is call.loop
            except RuntimeError:
                here = False
            if here:
                _settle(call.future, result)
                continue
            try:
                call.loop.call_soon_threadsafe(_settle, call.future, result)
            except RuntimeError:
                # That loop has been closed; nobody waits any more.
                continue


class _Grace:
    """The time that other threads get to come to rest."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._spent = time.process_time()

    def left(self) -> float:
        """Return how many seconds are left."""
        waited = time.monotonic() - self._began
        if waited < _GRACE:
            return _GRACE - waited
        # On a busy machine a thread may have had no time at all yet.
        had_time = time.process_time() - self._spent >= _GRACE
        return 0 if had_time or waited >= _PATIENCE or not _others_run() else _GRACE / 4


def _others_run() -> bool:
    """Whether another thread of this process runs, or would if a processor were free."""
    me = str(threading.get_native_id())
    for thread in os.listdir("/proc/self/task"):
        with suppress(OSError), open(f"/proc/self/task/{thread}/stat", "rb") as stat:
            # The name before it may hold anything.
            if thread != me and stat.read().rpartition(b") ")[2].startswith(b"R"):
                return True
    return False


def _settle(future: asyncio.Future[Any], result: Mapping[str, Any]) -> None:
    if future.done():
        return
    if "error" in result:
        future.set_exception(ToolExecutionError(result["error"] or _NO_MESSAGE))
    else:
        future.set_result(result["value"])


# Where a thread that waits for another one stands.
_WAITING: Final = frozenset(
    function.__code__
    for function in (
        threading.Condition.wait,
        threading.Thread.join,
        getattr(threading.Thread, "_wait_for_tstate_lock", threading.Thread.join),
        concurrent.futures.thread._worker,
    )
)


def _waits(frame: FrameType | None) -> bool:
    """Whether the thread whose innermost frame this is waits for another."""
    if frame is None or frame.f_code not in _WAITING:
        return False
    while frame is not None:
        if frame.f_code is threading.Thread.start.__code__:
            # It waits for a thread of its own making to begin.
            return False
        frame = frame.f_back
    return True


def receive(stream: socket.socket) -> frames.Frame:
    """Read one frame from a blocking socket.

    Raises EOFError if the other end is gone.
    """
    length, kind = frames.HEADER.unpack(_receive_exactly(stream, frames.HEADER.size))
    return frames.Frame(kind, _receive_exactly(stream, length))


def _receive_exactly(stream: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        # One piece, unless a signal comes in between: to copy many megabytes takes long.
        piece = stream.recv(size - len(data), socket.MSG_WAITALL)
        if not piece:
            raise EOFError("the other end is gone")
        data += piece
    return data


class _Selector(selectors.DefaultSelector):
    """A selector that pauses the program where its loop would wait."""

    def __init__(self, calls: Calls) -> None:
        super().__init__()
        self._calls = calls

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        """Wait as selectors do, but for tool results first."""
        ready: list[tuple[SelectorKey, int]]
        if timeout is not None and timeout <= 0:
            ready = super().select(timeout)
            return ready
        # Other processes are looked at first: what they sent before they came to rest is
        # ready then.
        patience = self._calls.patience()
        # What is ready at this instant may have more to call.
        ready = super().select(0)
        if ready or not patience and self._calls.rest():
            return ready
        if patience:
            timeout = patience if timeout is None else min(timeout, patience)
        self._calls.resting(True)
        try:
            ready = super().select(timeout)
            return ready
        finally:
            self._calls.resting(False)


class Loop(asyncio.SelectorEventLoop):
    """The event loop of the program, of any of its threads."""

    def __init__(self, calls: Calls) -> None:
        self._clock = calls.clock
        super().__init__(_Selector(calls))

    def time(self) -> float:
        """Return the program's time, which stands still in a pause."""
        return self._clock.time()

    def used(self) -> bool:
        """Tell whether anything was left to this loop to do."""
        base: Any = self
        return bool(base._ready or base._scheduled or base._asyncgens or base._default_executor)


def install(calls: Calls) -> None:
    """Make ``asyncio.run`` and its kin use Loop."""

    with warnings.catch_warnings():
        # Policies go away in Python 3.16; until then there is no other way.
        warnings.simplefilter("ignore", DeprecationWarning)

        class Policy(asyncio.DefaultEventLoopPolicy):
            def __init__(self) -> None:
                super().__init__()
                # The first one is made while nobody waits.
                self._ready = [Loop(calls)]

            def new_event_loop(self) -> asyncio.AbstractEventLoop:
                return self._ready.pop() if self._ready else Loop(calls)

        asyncio.set_event_loop_policy(Policy())

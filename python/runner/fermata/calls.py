"""Calls: the waiting tool calls are sent as one batch, and their results come back.

A program makes a call by awaiting a stub, or by calling a method that blocks its thread. When the
program rests, which means that nothing in it can run any more, all waiting calls are sent to the
supervisor as one batch, and this process waits for the results. A program with one thread is neither
polled nor delayed for that: its event loop notices when it has nothing to run, and a thread that
blocks has nothing to run.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import socket
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from json import dumps, loads
from math import ceil
from typing import Any, Final

from fermata import frames, lines, tools, values
from fermata.forgotten import Forgotten
from fermata.loops import Clock, Loop
from fermata.rest import Rest

# The limit on the calls of one pause, in bytes. Calls beyond it go into the next pause.
MAX_BATCH: Final = 16_000_000

# The longest time after which an event loop asks to be woken, in milliseconds. It wakes in vain, and asks again.
_MAX_WAKES: Final = 1_000_000

_ENDED: Final = "the program has ended; no tool can be called any more"
_FORKED: Final = "tools can be called only in the program's own process; use threads in place of processes"


class _Call:
    """A call that a task awaits."""

    def __init__(self, loop: asyncio.AbstractEventLoop, tool: str) -> None:
        self.number = 0
        self.text = b""
        self.sent = False
        self.tool = tool
        self.thread = threading.get_ident()
        self.future: asyncio.Future[Any] = loop.create_future()
        self._loop = loop

    def done(self) -> bool:
        """Tell whether nothing waits for the result any more."""
        return self.future.done()

    def take(self, result: Mapping[str, Any]) -> None:
        """Hand the result over, from any thread."""
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        if here:
            _settle(self.future, result)
            return
        try:
            self._loop.call_soon_threadsafe(_settle, self.future, result)
        except RuntimeError:
            # The loop has been closed, so nobody waits for the result any more.
            return

    def forgotten(self) -> bool:
        """Tell whether this call was not sent, and the event loop of its task does not run any more."""
        return not self.sent and not self.future.done() and not self._loop.is_running()

    def abandon(self) -> None:
        """Make the task stop waiting, from any thread."""
        self.take({"ended": True})


class _Blocking:
    """A call that a thread waits for."""

    def __init__(self) -> None:
        self.number = 0
        self.text = b""
        self.sent = False
        self.thread = threading.get_ident()
        self._result: Mapping[str, Any] | None = None
        self._ended = False
        # Held until the thread need not wait any more.
        self._arrived = threading.Lock()
        self._arrived.acquire()

    def done(self) -> bool:
        """Tell whether nothing waits for the result any more."""
        return self._ended

    def take(self, result: Mapping[str, Any]) -> None:
        """Hand the result over, from any thread."""
        self._result = result
        self.abandon()

    def abandon(self) -> None:
        """Make the thread stop waiting."""
        if not self._ended:
            self._ended = True
            self._arrived.release()

    def wait(self) -> None:
        """Wait in the call's thread until the result has arrived, or no result will come."""
        self._arrived.acquire()

    def result(self) -> Any:
        """Return the result, or raise the error that it has."""
        if self._result is None:
            raise RuntimeError(_ENDED)
        if "error" in self._result:
            raise tools.failure(self._result)
        return self._result["value"]


class Calls:
    """The calls of one program, and its stream to the supervisor."""

    def __init__(self, stream: socket.socket) -> None:
        self.clock = Clock()
        self._stream = stream
        self._process = os.getpid()
        # Reads the payload of RESULTS.
        self._decode: Callable[[bytes], Iterable[Mapping[str, Any]]] = loads
        self._lock = threading.Lock()
        self.rest = Rest(self._lock)
        # Held from the moment when a batch is sent until its results are handed over.
        self._exchanging = threading.Lock()
        self._waiting: dict[int, _Call | _Blocking] = {}
        self._issued = 0
        self._closed = False
        # Whether an alarm of this process stands still in a pause, like its clock.
        self.stops_alarms = False

    def refuse_all(self) -> None:
        """Refuse every call: this process is not the program's own."""
        self._process = 0

    def come_from_processes(
        self, rest: Callable[[], bool], decode: Callable[[bytes], Iterable[Mapping[str, Any]]]
    ) -> None:
        """Make calls for other processes.

        ``rest`` returns whether these processes rest, and ``decode`` reads the payload of RESULTS for them.
        """
        self.rest.processes = rest
        self._decode = decode

    def invoke(self, name: str, input: dict[str, Any], toolset: str = "") -> Coroutine[Any, Any, Any]:
        """Return a coroutine that makes one call and waits for its result.

        ``toolset`` is the key of the toolset through which the program calls the tool, if any. The
        input is encoded now, so later changes do not affect it. Raises TypeError or ValueError if it
        cannot be sent.
        """
        return self._call(name, values.encode(input), toolset)

    async def _call(self, name: str, input: str, toolset: str) -> Any:
        try:
            return await self.request(name, input, lines.here(), toolset)
        except BaseException as error:
            # With a bare raise, the traceback gets no line of this function: it ends in the program.
            error.__traceback__ = lines.made()
            raise

    def block(self, name: str, input: dict[str, Any], toolset: str) -> Any:
        """Make one call and wait for its result in this thread, like an event loop that has nothing to run.

        Raises TypeError or ValueError if the input cannot be sent.
        """
        text = values.encode(input)
        call = _Blocking()
        try:
            self._register(call, name, text, lines.here(), toolset)
            while not call.done() and self.rest.alone() and self._exchanging.acquire(blocking=False):
                try:
                    self._exchange(resting=True)
                finally:
                    self._exchanging.release()
            if not call.done():
                # Other threads must get time to run, before this exchange and between all later ones.
                self._call_courier()
                call.wait()
        finally:
            self.rest.idle.discard(call.thread)
            self._waiting.pop(call.number, None)
        return call.result()

    async def request(self, name: str, input: str, line: int, toolset: str = "") -> Any:
        """Make one call, whose input is JSON already, and wait for its result.

        ``line`` is the program's line, or 0 if it is not known.
        """
        loop = asyncio.get_running_loop()
        call = _Call(loop, name)
        self._register(call, name, input, line, toolset)
        if not isinstance(loop, Loop):
            # An event loop of another kind does not notify us when it has nothing to run.
            self._call_courier()
        try:
            return await call.future
        finally:
            self._waiting.pop(call.number, None)

    def _register(self, call: _Call | _Blocking, name: str, input: str, line: int, toolset: str) -> None:
        """Give a new call its number, and add it to the waiting calls."""
        if os.getpid() != self._process:
            # This process was forked from the program. Its frames would be mixed with the program's.
            raise RuntimeError(_FORKED)
        whose = f'"toolset":{dumps(toolset)},' if toolset else ""
        where = f'"line":{line},' if line else ""
        text = f'{whose}"tool":{dumps(name)},{where}"input":{input}}}'.encode()
        with self._lock:
            if self._closed:
                raise RuntimeError(_ENDED)
            self._issued += 1
            call.number, call.text = self._issued, b'{"n":%d,%b' % (self._issued, text)
            self._waiting[call.number] = call
            if isinstance(call, _Blocking):
                # This must come before the call is visible, since handing the result over reverses it.
                self.rest.idle.add(call.thread)
            self.rest.call_made()

    def finish(self, payload: bytes) -> None:
        """Report that the program has ended. If a batch was sent, wait for its results before that."""
        with self._exchanging:
            self._stream.sendall(frames.encode(frames.DONE, payload))

    def close(self) -> None:
        """Refuse calls from now on: the program has ended."""
        with self._lock:
            self._closed = True
            abandoned = list(self._waiting.values())
            self._waiting.clear()
        for call in abandoned:
            if isinstance(call, _Call) and call.forgotten():
                FORGOTTEN.not_called(call.tool)
            call.abandon()

    def tasks_end(self, tasks: Iterable[asyncio.Task[Any]]) -> None:
        """Name the tools that these tasks were about to call, since their event loop ends."""
        with self._lock:
            waiting = [call for call in self._waiting.values() if isinstance(call, _Call)]
        FORGOTTEN.left_waiting(tasks, {id(call.future): call.tool for call in waiting if call.forgotten()})

    def patience(self) -> float:
        """Return for how many seconds at most the waiting calls are held back for other processes."""
        return self.rest.patience() if self._waiting else 0

    def pause(self, wakes: float | None = None) -> bool:
        """Pause if the program rests. An event loop calls this when it has nothing to run.

        The loop has a timer that is due in ``wakes`` seconds, or none. While the server runs the calls,
        the loop waits no longer than that. Returns True if results have come, or the timer is due.
        """
        if not self._waiting:
            return False
        me = threading.get_ident()
        self.rest.idle.add(me)
        try:
            if self.rest.others_rest() and self._exchanging.acquire(blocking=False):
                try:
                    self._exchange(True, wakes)
                finally:
                    self._exchanging.release()
                if self._waiting and not self.rest.alone():
                    self._call_courier()
                return True
        finally:
            self.rest.idle.discard(me)
        self._call_courier()
        return False

    def _call_courier(self) -> None:
        """Start the courier, a thread that sends the waiting calls even if another thread never rests."""
        with self._lock:
            if self.rest.courier is None or not self.rest.courier.is_alive():
                self.rest.courier = threading.Thread(target=self._carry, name="fermata-courier", daemon=True)
                self.rest.courier.start()

    def _carry(self) -> None:
        while True:
            resting = self.rest.wait_for_others()
            with self._exchanging:
                if self._waiting:
                    self._exchange(resting)
            with self._lock:
                if not self._waiting:
                    self.rest.courier = None
                    return

    def _exchange(self, resting: bool = False, wakes: float | None = None) -> None:
        """Send the waiting calls, wait for their results, and hand each result to the call that waits for it.

        Unless the whole program rests, the supervisor is told first that it must stop the other threads.
        The first call tells when the next timer is due. A result with the number 0 says that the program
        was not paused, so that its timers count the time; it may be the only one.
        """
        batch = self._batch()
        if not batch:
            return
        if wakes is not None and self.rest.processes is None:
            batch[0] = b'{"wakes":%d,%b' % (min(ceil(wakes * 1000), _MAX_WAKES), batch[0][1:])
        served = False
        calls = frames.encode(frames.CALLS, b"[%b]" % b",".join(batch))
        if not resting:
            calls = frames.encode(frames.BUSY, b"") + calls
        alarm = signal.getitimer(signal.ITIMER_REAL) if self.stops_alarms else (0, 0)
        if alarm[0]:
            signal.setitimer(signal.ITIMER_REAL, 0)
        self.clock.stop()
        try:
            results = self._decode(self._ask(calls))
            served = wakes is not None and any(result["n"] == 0 for result in results)
        finally:
            self.clock.go(served)
            if alarm[0]:
                # The alarm does not count the pause either.
                signal.setitimer(signal.ITIMER_REAL, *alarm)
        self.rest.results_came()
        self._deliver(results)

    def _ask(self, calls: bytes) -> bytes:
        """Send calls and return the payload of their results."""
        # The supervisor may have ended, and the program may have changed the handling of SIGPIPE.
        self._stream.sendall(calls, socket.MSG_NOSIGNAL)
        # If the thread waited in recv, the kernel would also wake it when the supervisor has read the
        # calls. In select it sleeps until there is something to read.
        select.select([self._stream], [], [])
        kind, payload = frames.receive(self._stream)
        if kind != frames.RESULTS:
            raise frames.ProtocolError(f"frame {kind} in place of results")
        return payload

    def _batch(self) -> list[bytes]:
        batch: list[bytes] = []
        size = 1
        for _, call in sorted(self._waiting.items()):
            if batch and size + len(call.text) + 1 > MAX_BATCH:
                break
            if not call.done():
                call.sent = True
                batch.append(call.text)
                size += len(call.text) + 1
        return batch

    def _deliver(self, results: Iterable[Mapping[str, Any]]) -> None:
        for result in results:
            call = self._waiting.pop(result["n"], None)
            if call is not None:
                # From now on the call's thread has something to run, even if it has not woken up yet.
                self.rest.idle.discard(call.thread)
                call.take(result)


# Programs see the name of this file where Python shows a task.
_CODE: Final = Calls._call.__code__.replace(co_filename="<tools>", co_firstlineno=1)
Calls._call.__code__ = _CODE
# Says which calls of this process were forgotten.
FORGOTTEN: Final = Forgotten(_CODE)


def _settle(future: asyncio.Future[Any], result: Mapping[str, Any]) -> None:
    if future.done():
        return
    if "ended" in result:
        future.set_exception(RuntimeError(_ENDED))
    elif "error" in result:
        future.set_exception(tools.failure(result))
    else:
        future.set_result(result["value"])

"""The supervisor: the first process of a sandbox, between the server and the worker.

It passes frames on without reading them, captures what every process of the sandbox prints, stops
all of them while the program is paused, and reports how the program ended. It runs one program
and outlives the servers that it speaks to.

Each of its subjects has a module. Here they come together in one event loop:

- ``servers``: the connection to the servers
- ``control``: the stream to the worker
- ``output``: capturing what the program prints
- ``teller``: sending that to the server while the program runs
- ``pauses``: watching a stopped program
- ``files``: the files that an ended program has left
- ``placing``: files for a program that waits
- ``states``: the state and its moves
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from json import dumps, loads
from typing import Protocol

from fermata import PROTOCOL, asking, frames, sandbox, states, stopping, workspace
from fermata.control import Control
from fermata.events import Events
from fermata.files import Files
from fermata.frames import Channel, Frame, ProtocolError, WorkerChannel
from fermata.output import Outputs
from fermata.pauses import Meter, Pauses
from fermata.placing import Placing
from fermata.servers import Servers
from fermata.states import State
from fermata.stopping import Stopper
from fermata.teller import Teller


class ExitStatus(Protocol):
    """Reports how the worker process has ended."""

    def fileno(self) -> int:
        """Return a descriptor that becomes readable when the worker has ended."""

    def read(self) -> int:
        """Return the worker's exit code, negative for a signal."""


@dataclass
class Worker:
    """The worker process as its supervisor sees it."""

    control: WorkerChannel
    stdout: int
    stderr: int
    status: ExitStatus
    # How often the kernel has killed a process of the sandbox because memory ran out.
    oom_kills: Callable[[], int]
    stopper: Stopper


class Supervisor:
    """Runs one worker for one server at a time.

    Servers connect to ``listener``, or share ``stream``; see Servers, also for ``orphan``.
    ``output`` is the limit on stdout and stderr each, in bytes.
    """

    def __init__(
        self,
        worker: Worker,
        output: int,
        orphan: float,
        listener: socket.socket | None = None,
        stream: Channel | None = None,
    ) -> None:
        self._worker = worker
        self._state: State = states.STARTING
        # Whether the sandbox is not needed any more, so that its first process ends.
        self._finished = False
        # The worker's version of Python.
        self._python = ""
        # The worker's process id, which it sends before its program arrives, or 0 if it does not.
        self._pid = 0
        # How often the program has paused.
        self._rounds = 0
        self._events = Events()
        self._meter = Meter()
        self._servers = Servers(self._events, self, orphan, listener, stream)
        self._control = Control(self._events, worker.control, self._take, self._broken, self._pace_files)
        self._outputs = Outputs(self._events, worker.stdout, worker.stderr, output, self._printed, self._overflow)
        self._teller = Teller(self._servers, self._outputs.both)
        self._pauses = Pauses(worker.stopper, self._meter, self._servers.say)
        self._files = Files(self._servers.reply)
        self._placing = Placing(sandbox.WORKSPACE)
        self._events.watch(worker.status.fileno(), self._worker_ended)

    def run(self) -> None:
        """Serve until the sandbox is not needed any more."""
        try:
            while not self._finished and (left := self._servers.time_left()) != 0:
                self._events.wait(self._teller.until_due(self._pauses.until_look(left)))
                if self._pauses.look_at is not None:
                    self._pauses.look_if_due()
                if self._teller.tell_at is not None:
                    self._teller.tell_if_due()
                if self._servers.greets:
                    self._servers.greet()
        finally:
            # Frozen processes would not die with this one, and would keep it from ending.
            stopping.signal_all(signal.SIGKILL)
            self._pauses.release()
            self._servers.close()
            self._events.close()

    def _move(self, to: State) -> None:
        """Change the state. This is the only place that does so."""
        if to not in states.MOVES[self._state]:
            raise RuntimeError(f"no move leads from {self._state} to {to}")
        self._state = to

    # Requests of servers: the methods of servers.Owner.

    def attached(self) -> None:
        """Drop the requests of another server."""
        self._files.cancel()
        self._placing.cancel()
        self._pauses.forget_answer()

    def hello(self) -> bytes | None:
        """Return the payload of the hello, or None while the worker starts."""
        if self._state == states.STARTING:
            return None
        self._meter.settle()
        hello: dict[str, object] = {"protocol": PROTOCOL, "python": self._python, "state": self._state}
        return dumps(hello | {"round": self._rounds, "ran": self._meter.take()}).encode()

    def obey(self, frame: Frame) -> None:
        """Do what a frame of the server says."""
        match frame.kind:
            case frames.RESULTS if self._state == states.PAUSED:
                # This must come before the results are passed on, since calls that wait stop the program again.
                self._pauses.go_on()
                self._resume(frame)
            case frames.STOP if self._state == states.PAUSED:
                self._pauses.stop(frame.payload)
            case frames.STOP:
                # The program runs again, or has ended, or another server has sent this.
                pass
            case frames.KILL:
                self._end(self._whereabouts(frame) | {"killed": True})
            case frames.FILE if self._state == states.READY:
                self._control.send(frame)
                self._pace_files()
            case frames.FILE if self._state in (states.RUNNING, states.PAUSED):
                self._place(frame)
            case frames.FILE if self._state == states.ENDED:
                # The program for which the file is has ended meanwhile. Its server will get the report.
                pass
            case frames.PROGRAM if self._state == states.READY:
                self._resume(frame)
                # What was printed before is output of the program.
                self._teller.tell()
                # Frames of the server must be read from now on, however many files still wait.
                self._pace_files()
            case frames.LIST if self._state == states.ENDED:
                self._files.list(frame.payload)
            case frames.TAKE if self._state == states.ENDED:
                self._files.take(frame.payload.decode())
            case _:
                raise ProtocolError(f"frame {frame.kind} while {self._state}")

    def greeted(self) -> None:
        """Send what the program has printed to a server, from the beginning."""
        self._teller.restart()
        if self._state == states.RUNNING:
            self._teller.tell()
        elif self._state == states.PAUSED:
            # The calls are sent after it.
            self._servers.say(self._teller.rest())

    def room(self) -> None:
        """Send more of a file, if one is being sent, or of the output."""
        self._files.send_more()
        self._teller.room()

    def left(self, replaced: bool) -> None:
        """Continue without a server, if another one can come."""
        if self._state in (states.RUNNING, states.PAUSED):
            self._meter.leave()
        if self._state == states.PAUSED:
            self._pauses.stop(None)
        unknown = self._state in (states.STARTING, states.READY)
        if not replaced and (unknown or not self._servers.can_return):
            # No other server knows of this sandbox, or none can come.
            self._finished = True

    def _resume(self, frame: Frame) -> None:
        """Let the program run, with what the server has sent for it."""
        self._servers.answered()
        self._move(states.RUNNING)
        self._control.answer(frame)

    def _place(self, frame: Frame) -> None:
        """Take a piece of a file for the program that waits. After the last one, report what became of the file."""
        problem = self._placing.take(frame.payload)
        if problem is not None:
            self._servers.reply(frames.encode(frames.PLACED, dumps({"error": problem}).encode()))

    def _pace_files(self) -> None:
        """Hold files back while the worker has not taken those before them."""
        self._servers.listen(self._state != states.READY or not self._control.backlog)

    # Events of the program.

    def _take(self, frame: Frame, busy: bool) -> None:
        """Take a frame of the worker. A part of the program may still be busy."""
        match frame.kind:
            case frames.CALLS if self._state == states.RUNNING:
                # Output from before the calls is sent before them.
                self._outputs.gather()
                if self._state != states.RUNNING:
                    # The output has exceeded its limit, which has ended the program.
                    return
                self._move(states.PAUSED)
                self._rounds += 1
                self._servers.tell(frames.encode(*frame), before=self._teller.rest())
                if busy or not self._servers.attached:
                    self._pauses.stop(b"")
            case frames.DONE if self._state == states.RUNNING:
                self._end({}, frames.encode(*frame))
            case frames.READY if self._state == states.STARTING:
                ready = loads(frame.payload)
                self._python, self._pid = str(ready["python"]), int(ready.get("pid", 0))
                self._move(states.READY)
            case _:
                raise ProtocolError(f"frame {frame.kind} from the worker while {self._state}")

    def _whereabouts(self, kill: Frame) -> dict[str, object]:
        """Return what the report of the end says about the line of the program, if the server asks for that."""
        if not kill.payload or self._state != states.RUNNING or not self._pid:
            return {}
        return {"line": asking.ask(self._worker.control, self._pid)}

    def _broken(self) -> None:
        self._end({"broken": True})

    def _printed(self) -> None:
        if self._state in (states.RUNNING, states.PAUSED):
            self._teller.note()

    def _overflow(self) -> None:
        self._end({})

    def _worker_ended(self, mask: int) -> None:
        status = self._worker.status
        self._events.unwatch(status.fileno())
        code = status.read()
        if self._state == states.RUNNING:
            self._control.last_words()
        self._end({"code": code, "oom": self._worker.oom_kills() > 0})

    def _end(self, how: dict[str, object], done: bytes = b"") -> None:
        """Report how the program ended, and kill what still runs. ``done`` is the worker's own report."""
        if self._state == states.ENDED:
            return
        if self._state in (states.STARTING, states.READY):
            # No program has run, so the sandbox cannot be used. What the worker has printed is for
            # the server's log.
            os.write(2, self._outputs.drain_stderr())
            self._finished = True
            return
        self._move(states.ENDED)
        self._meter.settle()
        # Nothing is printed from now on, and the report has all output.
        stopping.signal_all(signal.SIGSTOP)
        self._teller.stop()
        self._outputs.finish()
        self._placing.cancel()
        self._control.stop()
        report = how | self._outputs.report()
        if not workspace.is_empty(sandbox.WORKSPACE):
            report["files"] = True
        head = dumps(report).encode()
        payload = len(head).to_bytes(4, "big") + head + self._outputs.data()
        self._servers.tell(done + frames.encode(frames.EXIT, payload))
        stopping.signal_all(signal.SIGKILL)
        # Frozen processes die only when they are released.
        self._pauses.release()

"""The supervisor: PID 1 of a sandbox, between the server and the worker.

It passes frames on without reading them, captures what every process of the
sandbox prints, stops all of them while the program is paused, and tells how the
program ended. It keeps what it told the server since the server last spoke, so
that another server can take over.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from json import dumps, loads
from typing import Final, Protocol

from fermata import PROTOCOL, frames, sandbox, workspace
from fermata.frames import Channel, Frame, ProtocolError
from fermata.output import Output
from fermata.states import MOVES, State
from fermata.stopping import Stopper, signal_all

# How long processes that were killed may take to be dead, in seconds.
_DEATH: Final = 1.0
# How often it is looked, in seconds, whether a program that was told to has stopped: the
# first time, each time half as often, and not less than that. As often a program that can
# wake is looked at, of which less processor time is not worth a word, in nanoseconds.
_FIRST_LOOK: Final = 0.001
_LAST_LOOK: Final = 1.0
_UNSEEN: Final = 5_000_000


class ExitStatus(Protocol):
    """Tells how the worker process ended."""

    def fileno(self) -> int:
        """Return a descriptor that becomes readable when the worker has ended."""

    def read(self) -> int:
        """Return the worker's exit code, negative for a signal."""


@dataclass
class Worker:
    """The worker process as its supervisor sees it."""

    control: Channel
    stdout: int
    stderr: int
    status: ExitStatus
    # How often the kernel has killed a process of the sandbox for memory.
    oom_kills: Callable[[], int]
    stopper: Stopper


class Supervisor:
    """Runs one worker for one server at a time.

    ``listener`` is where servers connect; without one, ``stream`` is the only
    stream there is, and one server after the other uses it, each wherever the one
    before it died. ``output`` bounds stdout and stderr each, in bytes. A program
    without a server ends after ``orphan`` seconds; on the one stream a server that
    says nothing for that long is gone.
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
        self._orphan = orphan
        self._listener = listener
        self._server = stream
        self._attached = False
        # What a server begins with when it attaches, and finds our answer by.
        self._marker = b""
        self._state = State.STARTING
        self._python = ""
        # Whether a server waits for its hello.
        self._greets = False
        # How often the program has paused, and whether some of it runs on in the next pause.
        self._rounds = 0
        self._busy = False
        # Whether the program was told to stop, and has been seen to have stopped.
        self._stopped = False
        self._still = False
        # What a server that waits for that is to be answered.
        self._answer: bytes | None = None
        # When it is looked at again, and how much later after that.
        self._look_at: float | None = None
        self._pace = _FIRST_LOOK
        # How much processor time it had used at the last look, and for how long it has run
        # without being told of to a server, in nanoseconds.
        self._used = 0
        self._ran = 0
        # Since when it has no server that would count its time, in nanoseconds.
        self._alone: int | None = None
        self._kept: list[bytes] = []
        self._stdout = Output(worker.stdout, output)
        self._stderr = Output(worker.stderr, output)
        self._deadline = time.monotonic() + orphan
        self._poll = select.epoll()
        self._handlers: dict[int, Callable[[int], None]] = {}
        self._masks: dict[int, int] = {}
        self._finished = False
        # What is being sent of the file that the server has asked for last.
        self._content: Iterator[bytes] | None = None

    def run(self) -> None:
        """Serve until the sandbox has no further use."""
        try:
            self._serve()
        finally:
            # What is frozen would not die with this process, and keep it from ending.
            signal_all(signal.SIGKILL)
            if self._stopped:
                self._worker.stopper.go()

    def _serve(self) -> None:
        for output in (self._stdout, self._stderr):
            self._watch(output.fd, self._on_output(output))
        self._watch(self._worker.control.read_fd, self._on_worker)
        self._watch(self._worker.status.fileno(), self._on_status)
        if self._listener is not None:
            self._listener.setblocking(False)
            self._watch(self._listener.fileno(), self._on_listener)
        if self._server is not None:
            self._watch(self._server.read_fd, self._on_server)
        while not self._finished and (left := self._time_left()) != 0:
            for fd, mask in self._poll.poll(self._until_look(left)):
                if (handler := self._handlers.get(fd)) is not None:
                    handler(mask)
            if self._look_at is not None and time.monotonic() >= self._look_at:
                self._look()
            if self._greets:
                try:
                    self._greet()
                except OSError:
                    self._lose_server()

    def _become(self, state: State) -> None:
        """Change the state, which the table of moves must allow."""
        if state not in MOVES[self._state]:
            raise RuntimeError(f"no move from {self._state} to {state}")
        self._state = state

    def _time_left(self) -> float | None:
        """Return the seconds until no server is to be expected any more, None with one."""
        if self._attached and self._listener is not None:
            return None
        return max(0.0, self._deadline - time.monotonic())

    def _until_look(self, left: float | None) -> float | None:
        """Return how many of the seconds that are left may pass until the program is looked at."""
        if self._look_at is None:
            return left
        look = max(0.0, self._look_at - time.monotonic())
        return look if left is None else min(left, look)

    def _watch(self, fd: int, handler: Callable[[int], None]) -> None:
        self._handlers[fd] = handler
        self._masks[fd] = select.EPOLLIN
        self._poll.register(fd, select.EPOLLIN)

    def _unwatch(self, fd: int) -> None:
        if self._handlers.pop(fd, None) is not None:
            self._poll.unregister(fd)

    def _watch_for(self, fd: int, mask: int) -> None:
        if self._masks[fd] != mask:
            self._masks[fd] = mask
            self._poll.modify(fd, mask)

    # The server's side.

    def _on_listener(self, mask: int) -> None:
        assert self._listener is not None
        try:
            stream, _ = self._listener.accept()
        except OSError:
            return
        if self._server is not None:
            # The newest server is the one that counts.
            self._drop_server()
        fd = stream.detach()
        self._server = Channel(fd, fd, frames.MAX_FROM_SERVER)
        self._watch(fd, self._on_server)

    def _drop_server(self) -> None:
        if self._server is None:
            return
        self._unwatch(self._server.read_fd)
        self._server.close()
        self._server = None
        self._attached = False
        self._greets = False
        self._deadline = time.monotonic() + self._orphan
        if self._state in (State.RUNNING, State.PAUSED):
            self._alone = time.monotonic_ns()
        if self._state is State.PAUSED:
            self._stop(None)

    def _on_server(self, mask: int) -> None:
        server = self._server
        if server is None:
            return
        try:
            if mask & select.EPOLLOUT:
                self._flush(server)
            alive = server.fill() if mask & ~select.EPOLLOUT else True
            while (frame := server.next()) is not None:
                self._deadline = time.monotonic() + self._orphan
                self._obey(frame)
        except ProtocolError:
            # Another server may still come on the same stream.
            alive = server.skip()
        except OSError:
            alive = False
        if not alive:
            self._lose_server()

    def _lose_server(self) -> None:
        self._drop_server()
        if self._listener is None or self._state in (State.STARTING, State.READY):
            # Nobody can come any more, or nobody knows of this sandbox.
            self._finished = True

    def _obey(self, frame: Frame) -> None:
        match frame.kind:
            case frames.ATTACH:
                self._attached = True
                # What another server has asked for.
                self._content = self._answer = None
                self._marker = frame.payload
                if self._listener is None and self._server is not None and self._marker:
                    self._server.mark(frames.encode(*frame))
                self._greets = True
            case frames.PROGRAM if self._state is State.READY:
                self._go_on(frame)
            case frames.RESULTS if self._state is State.PAUSED:
                # First, since calls that wait already stop it again.
                self._go()
                self._go_on(frame)
            case frames.STOP if self._state is State.PAUSED:
                self._stop(frame.payload)
            case frames.STOP:
                # Another server's, or too late: there is nothing to stop.
                pass
            case frames.KILL:
                self._end({"killed": True})
            case frames.FILE if self._state is State.READY:
                self._pass_on(frame)
            case frames.LIST if self._state is State.ENDED:
                self._list(frame.payload)
            case frames.TAKE if self._state is State.ENDED:
                self._content = self._read(frame.payload.decode())
                self._send_content()
            case _:
                raise ProtocolError(f"frame {frame.kind} while {self._state}")

    def _go_on(self, frame: Frame) -> None:
        self._kept.clear()
        if self._worker.control.read_fd not in self._handlers:
            self._watch(self._worker.control.read_fd, self._on_worker)
        self._become(State.RUNNING)
        if self._server is not None:
            # It must be heard from now on, however many files are still on their way.
            self._update(self._server)
        self._pass_on(frame)

    def _pass_on(self, frame: Frame) -> None:
        try:
            self._worker.control.send(frames.encode(*frame))
        except OSError:
            # The worker is about to end, or has closed its stream; the rest tells.
            return
        self._update(self._worker.control)
        # What came together with the calls was left where it is.
        self._hear()

    def _greet(self) -> None:
        """Say hello, as soon as there is something to say."""
        if self._state is State.STARTING or self._server is None:
            return
        self._greets = False
        self._end_alone()
        hello: dict[str, object] = {"protocol": PROTOCOL, "python": self._python, "state": self._state}
        hello |= {"round": self._rounds, "ran": self._ran}
        self._ran = 0
        self._server.send(self._marker + frames.encode(frames.HELLO, dumps(hello).encode()))
        for kept in self._kept:
            self._server.send(kept)
        self._update(self._server)

    def _tell(self, what: bytes) -> None:
        """Send whole frames, and keep them."""
        self._kept.append(what)
        self._say(what)

    def _say(self, what: bytes) -> None:
        if not self._attached or self._greets or self._server is None:
            return
        try:
            self._server.send(what)
            self._update(self._server)
        except OSError:
            self._drop_server()

    def _flush(self, channel: Channel) -> None:
        channel.flush()
        if channel is self._server and not channel.backlog:
            self._send_content()
        self._update(channel)

    # The files that the program has left. Nothing else lives in the sandbox.

    def _list(self, payload: bytes) -> None:
        assert self._server is not None
        if _all_dead():
            found = workspace.listing(sandbox.WORKSPACE, **loads(payload))
        else:
            # What lives could change it under our hands.
            found = workspace.Listing()
            found.skip(".", "unreadable")
        self._server.send(frames.encode(frames.LISTING, found.encode()))
        self._update(self._server)

    def _read(self, name: str) -> Iterator[bytes]:
        """Yield the frames that carry a file."""
        try:
            root = os.open(sandbox.WORKSPACE, os.O_RDONLY | os.O_DIRECTORY)
            try:
                file = workspace.open_file(root, name)
            finally:
                os.close(root)
            with file:
                while data := file.read(workspace.CHUNK):
                    yield frames.encode(frames.CONTENT, data)
        except OSError:
            yield frames.encode(frames.LOST, b"")
            return
        yield frames.encode(frames.CONTENT, b"")

    def _send_content(self) -> None:
        """Send as much of a file as the server takes; the rest when it takes more."""
        while self._content is not None and self._server is not None and not self._server.backlog:
            frame = next(self._content, None)
            if frame is None:
                self._content = None
            else:
                self._server.send(frame)
                self._update(self._server)

    def _update(self, channel: Channel) -> None:
        """Ask to be told when the channel can take more, if it has to."""
        if channel is self._worker.control and self._server is not None and self._state is State.READY:
            self._update(self._server)
        # Files come no faster than the worker takes them.
        full = channel is self._server and self._state is State.READY and self._worker.control.backlog
        listen = 0 if full else select.EPOLLIN
        fd = channel.write_fd
        if fd == channel.read_fd:
            self._watch_for(fd, listen | (select.EPOLLOUT if channel.backlog else 0))
            return
        self._watch_for(channel.read_fd, listen)
        if channel.backlog and fd not in self._handlers:
            self._handlers[fd] = lambda mask: self._flush(channel)
            self._poll.register(fd, select.EPOLLOUT)
        elif not channel.backlog:
            self._unwatch(fd)

    # The worker's side.

    def _on_worker(self, mask: int) -> None:
        control = self._worker.control
        if self._state is State.PAUSED:
            # Whatever it says, or that it has ended, is for later.
            self._unwatch(control.read_fd)
            return
        try:
            if mask & select.EPOLLOUT:
                self._flush(control)
            alive = control.fill() if mask & ~select.EPOLLOUT else True
            self._hear()
        except OSError:
            alive = False
        except ProtocolError:
            self._end({"broken": True})
            return
        if not alive:
            # It has ended, or closed its stream: its status will tell.
            self._unwatch(control.read_fd)

    def _hear(self) -> None:
        """Take the worker's next frame; more are not read while the program is paused."""
        if self._state not in (State.STARTING, State.RUNNING):
            return
        while (frame := self._worker.control.next()) is not None and frame.kind == frames.BUSY:
            self._busy = True
        if frame is None:
            return
        match frame.kind:
            case frames.READY if self._state is State.STARTING:
                self._python = str(loads(frame.payload)["python"])
                self._become(State.READY)
            case frames.CALLS if self._state is State.RUNNING:
                self._become(State.PAUSED)
                self._rounds += 1
                self._tell(frames.encode(*frame))
                if self._busy or not self._attached:
                    self._stop(b"")
                self._busy = False
            case frames.DONE if self._state is State.RUNNING:
                self._end({}, frames.encode(*frame))
            case _:
                raise ProtocolError(f"frame {frame.kind} from the worker while {self._state}")

    # Pauses: the program stands still, and what it runs all the same is counted.

    def _stop(self, answer: bytes | None) -> None:
        """Stop the program, and answer the server when it has stopped."""
        self._answer = answer
        if self._stopped:
            self._look()
            return
        self._stopped, self._still, self._pace = True, False, _FIRST_LOOK
        self._worker.stopper.stop()
        self._look_at = time.monotonic() + self._pace

    def _look(self) -> None:
        """Look whether the program has stopped, or what it has used since it had."""
        stopper = self._worker.stopper
        if self._still:
            self._count()
        elif stopper.stopped():
            self._still, self._pace, self._used = True, _LAST_LOOK, stopper.used()
        if self._still and not stopper.wakes:
            self._look_at = None
        else:
            stopper.stop()
            self._pace = min(2 * self._pace, _LAST_LOOK)
            self._look_at = time.monotonic() + self._pace
        if self._still:
            self._end_alone()
            if self._answer is not None:
                self._say(frames.encode(frames.STOPPED, self._answer))
                self._answer = None

    def _count(self) -> None:
        """Count what the program has used since the last look."""
        used = self._worker.stopper.used()
        if used - self._used > _UNSEEN:
            self._ran += used - self._used
        self._used = used
        if self._ran and self._attached and not self._greets:
            self._say(frames.encode(frames.RAN, b"%d" % self._ran))
            self._ran = 0

    def _end_alone(self) -> None:
        """Count the time that the program had without a server until now."""
        if self._alone is not None:
            self._ran += time.monotonic_ns() - self._alone
            self._alone = None

    def _go(self) -> None:
        if self._stopped:
            if self._still and self._worker.stopper.wakes:
                self._count()
            self._move()

    def _move(self) -> None:
        self._stopped, self._look_at, self._answer = False, None, None
        self._worker.stopper.go()

    def _on_output(self, output: Output) -> Callable[[int], None]:
        def on_output(mask: int) -> None:
            output.fill()
            if not output.open:
                self._unwatch(output.fd)
            if output.over:
                self._end({})

        return on_output

    def _on_status(self, mask: int) -> None:
        self._unwatch(self._worker.status.fileno())
        code = self._worker.status.read()
        if self._state is State.RUNNING:
            # A last frame may have come with the end.
            try:
                self._worker.control.fill()
                self._worker.control.fill()  # The first one may have been too small.
                self._hear()
            except (OSError, ProtocolError):
                pass
        self._end({"code": code, "oom": self._worker.oom_kills() > 0})

    def _end(self, how: dict[str, object], done: bytes = b"") -> None:
        """Report, and kill what still runs, once; done is the worker's own report."""
        if self._state is State.ENDED:
            return
        if self._state in (State.STARTING, State.READY):
            # No program has run: there is no further use. What the worker has to say is
            # for the server's log.
            self._stderr.drain()
            os.write(2, self._stderr.data)
            self._finished = True
            return
        self._become(State.ENDED)
        self._end_alone()
        # Nothing is printed from now on.
        signal_all(signal.SIGSTOP)
        for output in (self._stdout, self._stderr):
            output.drain()
            self._unwatch(output.fd)
        self._unwatch(self._worker.control.read_fd)
        report = how | {
            "stdout": len(self._stdout.data),
            "stderr": len(self._stderr.data),
            "over": "stdout" if self._stdout.over else "stderr" if self._stderr.over else "",
        }
        if not workspace.is_empty(sandbox.WORKSPACE):
            report["files"] = True
        head = dumps(report).encode()
        payload = len(head).to_bytes(4, "big") + head + self._stdout.data + self._stderr.data
        self._tell(done + frames.encode(frames.EXIT, payload))
        signal_all(signal.SIGKILL)
        if self._stopped:
            # What is frozen dies only now.
            self._move()


def _all_dead() -> bool:
    """Wait until the processes that were killed are dead, and tell whether they are."""
    deadline = time.monotonic() + _DEATH
    while time.monotonic() < deadline:
        try:
            os.kill(-1, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.001)
    return False

"""A supervisor between scripted servers and a scripted worker, for the tests of its parts.

It runs in a thread; conftest collects what it would send to every process.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fermata import frames, stopping
from fermata.frames import Frame, WorkerChannel
from fermata.supervisor import Supervisor, Worker

OUTPUT = 100_000
FOREVER = 60.0


class Stopper:
    """A stopper that sends the signals that conftest collects. The test says when everything has stopped."""

    def __init__(self) -> None:
        self.wakes = False
        self.still = True
        self.nanoseconds = 0

    def stop(self) -> None:
        stopping.signal_all(signal.SIGSTOP)

    def stopped(self) -> bool:
        return self.still

    def used(self) -> int:
        return self.nanoseconds

    def go(self) -> None:
        stopping.signal_all(signal.SIGCONT)


class Status:
    """The exit status of a worker. The test says when the worker ends."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()

    def fileno(self) -> int:
        return self._read

    def read(self) -> int:
        [code] = struct.unpack("i", os.read(self._read, 4))
        return int(code)

    def tell(self, code: int) -> None:
        os.write(self._write, struct.pack("i", code))

    def close(self) -> None:
        os.close(self._read)
        os.close(self._write)


class Server:
    """A server's end of the stream."""

    def __init__(self, stream: socket.socket) -> None:
        self.stream = stream
        self.pauses: list[Frame] = []
        # What this server was told of stdout and stderr.
        self.printed = [b"", b""]
        stream.settimeout(10)

    def send(self, kind: int, payload: bytes = b"") -> None:
        self.stream.sendall(frames.encode(kind, payload))

    def receive(self) -> Frame:
        """Return the next frame that is neither output nor about a pause."""
        while (frame := frames.receive(self.stream)).kind in (frames.STOPPED, frames.RAN, frames.OUTPUT):
            if frame.kind == frames.OUTPUT:
                self._take(frame)
            else:
                self.pauses.append(frame)
        return frame

    def hear_output(self) -> bytes:
        """Return the next piece of output. No other frame may come before it."""
        frame = frames.receive(self.stream)
        assert frame.kind == frames.OUTPUT
        return self._take(frame)

    def _take(self, frame: Frame) -> bytes:
        stream, offset = frames.OUTPUT_HEAD.unpack_from(frame.payload)
        piece = frame.payload[frames.OUTPUT_HEAD.size :]
        assert piece and len(piece) <= frames.MAX_OUTPUT
        assert offset == len(self.printed[stream - 1]), "a gap or a repetition"
        self.printed[stream - 1] += piece
        return piece

    def hear_of_pause(self) -> Frame:
        """Return the next frame, which has to be about a pause."""
        frame = self.pauses.pop(0) if self.pauses else frames.receive(self.stream)
        assert frame.kind in (frames.STOPPED, frames.RAN)
        return frame

    def attach(self) -> dict[str, Any]:
        """Attach and return the hello."""
        self.send(frames.ATTACH)
        frame = self.receive()
        assert frame.kind == frames.HELLO
        hello: dict[str, Any] = json.loads(frame.payload)
        return hello

    def exit(self) -> tuple[dict[str, Any], bytes, bytes]:
        """Receive the report of the end: what it says, stdout and stderr."""
        kind, payload = self.receive()
        assert kind == frames.EXIT
        end = 4 + int.from_bytes(payload[:4], "big")
        head = json.loads(payload[4:end])
        output = payload[end:]
        assert len(output) == head["stdout"] + head["stderr"]
        stdout, stderr = output[: head["stdout"]], output[head["stdout"] :]
        # The report has all that the server was told, and may have more.
        assert stdout.startswith(self.printed[0]) and stderr.startswith(self.printed[1])
        return head, stdout, stderr

    def gone(self) -> bool:
        """Wait until the supervisor has closed the stream."""
        try:
            return self.stream.recv(1) == b""
        except ConnectionResetError:
            return True


class Sandbox:
    """A supervisor, its worker and the way to it."""

    def __init__(self, directory: Path, orphan: float = FOREVER, control: socket.socket | None = None) -> None:
        self.path = str(directory / "socket")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen()
        self.worker, theirs = socket.socketpair()
        if control is not None:
            theirs.close()
            theirs = control
        self.worker.settimeout(10)
        self._channel = WorkerChannel(theirs)
        stdout, self.stdout = os.pipe()
        stderr, self.stderr = os.pipe()
        self.status = Status()
        self.oom_kills = 0
        self.stopper = Stopper()
        self._servers: list[socket.socket] = []
        self._fds = [stdout, self.stdout, stderr, self.stderr]
        self._supervisor = Supervisor(
            Worker(
                self._channel,
                stdout,
                stderr,
                self.status,
                lambda: self.oom_kills,
                self.stopper,
            ),
            OUTPUT,
            orphan,
            listener=self._listener,
        )
        self.thread = threading.Thread(target=self._supervisor.run, daemon=True)
        self.thread.start()

    def connect(self) -> Server:
        stream = socket.socket(socket.AF_UNIX)
        stream.settimeout(10)
        stream.connect(self.path)
        self._servers.append(stream)
        return Server(stream)

    def say(self, kind: int, payload: Any = None, resting: bool = False) -> None:
        """Speak as the worker."""
        if kind == frames.CALLS and not resting:
            self.worker.sendall(frames.encode(frames.BUSY, b""))
        self.worker.sendall(frames.encode(kind, json.dumps(payload).encode()))

    def hear(self) -> Frame:
        """Listen as the worker."""
        return frames.receive(self.worker)

    def ready(self) -> Server:
        """Become ready and return the server that was told so."""
        self.say(frames.READY, {"python": "3.x"})
        server = self.connect()
        assert server.attach()["state"] == "ready"
        return server

    def running(self) -> Server:
        server = self.ready()
        server.send(frames.PROGRAM, b"program")
        assert self.hear() == Frame(frames.PROGRAM, b"program")
        return server

    def paused(self) -> Server:
        server = self.running()
        self.say(frames.CALLS, [1])
        assert server.receive() == Frame(frames.CALLS, b"[1]")
        return server

    def ended(self) -> bool:
        """Wait until the supervisor has ended."""
        self.thread.join(10)
        return not self.thread.is_alive()

    def close(self) -> None:
        self.worker.close()
        if self.thread.is_alive():
            self._supervisor._finished = True
            # Something happens, so that it looks.
            self.connect()
        assert self.ended(), "the supervisor does not end"
        for fd in self._fds:
            os.close(fd)
        for stream in (*self._servers, self._listener):
            stream.close()
        self.status.close()
        self._channel.close()


def sent(signals: list[signal.Signals], want: list[signal.Signals]) -> None:
    """Wait until these signals were sent: the last one comes after the report of the end."""
    deadline = time.monotonic() + 10
    while len(signals) < len(want) and time.monotonic() < deadline:
        time.sleep(0.001)
    assert signals == want


def wait_until(condition: Callable[[], bool], complaint: str) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, complaint
        time.sleep(0.001)

"""What the processes of the sandbox print."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Final

from fermata.events import Events, Handler

_CHUNK: Final = 1 << 16
# How long to read what is left in the pipes after the program's end, in seconds. Every
# process of the sandbox is stopped by then.
_DRAIN: Final = 1.0


class Output:
    """The supervisor's end of the pipe that is a program's stdout or stderr.

    ``limit`` bounds what is kept, in bytes.
    """

    def __init__(self, fd: int, limit: int) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self.data = bytearray()
        # Whether more was printed than is kept, and whether anybody can still print.
        self.over = False
        self.open = True
        self._limit = limit

    def fill(self) -> None:
        """Read what there is, and keep as much as the limit allows."""
        try:
            data = os.read(self.fd, _CHUNK)
        except BlockingIOError:
            return
        if not data:
            self.open = False
            return
        room = self._limit - len(self.data)
        self.over = self.over or len(data) > room
        self.data += data[: max(room, 0)]

    def drain(self) -> None:
        """Read what is left in the pipe."""
        deadline = time.monotonic() + _DRAIN
        while self.open and not self.over and time.monotonic() < deadline:
            before = len(self.data)
            self.fill()
            if len(self.data) == before:
                return


class Outputs:
    """Captures stdout and stderr until the program ends.

    ``limit`` bounds each of the two, in bytes; ``overflow`` is called when there was more.
    """

    def __init__(self, events: Events, stdout: int, stderr: int, limit: int, overflow: Callable[[], None]) -> None:
        self._events = events
        self._overflow = overflow
        self._stdout = Output(stdout, limit)
        self._stderr = Output(stderr, limit)
        for output in (self._stdout, self._stderr):
            events.watch(output.fd, self._handler(output))

    def finish(self) -> None:
        """Read what is left in the pipes, and nothing after that."""
        for output in (self._stdout, self._stderr):
            output.drain()
            self._events.unwatch(output.fd)

    def report(self) -> dict[str, object]:
        """Return what the report of the end says of the output: how long it is, and what was too long."""
        over = "stdout" if self._stdout.over else "stderr" if self._stderr.over else ""
        return {"stdout": len(self._stdout.data), "stderr": len(self._stderr.data), "over": over}

    def data(self) -> bytes:
        """Return stdout, followed by stderr."""
        return b"".join((self._stdout.data, self._stderr.data))

    def drain_stderr(self) -> bytes:
        """Return stderr, with what is left in its pipe."""
        self._stderr.drain()
        return bytes(self._stderr.data)

    def _handler(self, output: Output) -> Handler:
        # The place from which output leaves while the program runs: each piece that fill adds has
        # a stream, and an offset, which is the length of the data before it.
        def handle(mask: int) -> None:
            output.fill()
            if not output.open:
                self._events.unwatch(output.fd)
            if output.over:
                self._overflow()

        return handle

"""What the processes of the sandbox print."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from fermata.events import Events, Handler

_CHUNK: Final = 1 << 16
# How long to read what is left in the pipes after the end of the program, in seconds. By then every
# process of the sandbox is stopped.
_DRAIN: Final = 1.0
# How often to read a pipe at once: the kernel lets it hold 1 MiB.
_READS: Final = 16


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

    def fill(self) -> bool:
        """Read, and keep as much as the limit allows. Return whether there may be more to read at once."""
        try:
            data = os.read(self.fd, _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self.open = False
            return False
        room = self._limit - len(self.data)
        self.over = self.over or len(data) > room
        self.data += data[: max(room, 0)]
        return len(data) == _CHUNK

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

    ``limit`` bounds each of the two, in bytes. ``printed`` is called when something was read, and
    ``overflow`` when there was more than the limit.
    """

    def __init__(
        self,
        events: Events,
        stdout: int,
        stderr: int,
        limit: int,
        printed: Callable[[], None],
        overflow: Callable[[], None],
    ) -> None:
        self._events = events
        self._printed = printed
        self._overflow = overflow
        self._stdout = Output(stdout, limit)
        self._stderr = Output(stderr, limit)
        # Finds out which of the pipes can be read.
        self._filled = select.poll()
        for output in self.both:
            events.watch(output.fd, self._handler(output))
            self._filled.register(output.fd, select.POLLIN)

    @property
    def both(self) -> tuple[Output, Output]:
        """Stdout and stderr."""
        return self._stdout, self._stderr

    def gather(self) -> None:
        """Read what is in the pipes now, without waiting for more."""
        for fd, _ in self._filled.poll(0):
            output = self._stdout if fd == self._stdout.fd else self._stderr
            for _ in range(_READS):
                if not self._read(output):
                    break
            if output.over:
                # The program has ended.
                return

    def finish(self) -> None:
        """Read what is left in the pipes, and nothing after that."""
        for output in self.both:
            output.drain()
            self._leave(output)

    def report(self) -> dict[str, object]:
        """Return what the report of the end says about the output: the lengths, and which one was too long."""
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
        def handle(mask: int) -> None:
            self._read(output)

        return handle

    def _read(self, output: Output) -> bool:
        """Read once, and call ``printed`` and ``overflow``. Return whether there may be more to read at once."""
        more = output.fill()
        if not output.open:
            self._leave(output)
        elif output.over:
            self._overflow()
            return False
        else:
            self._printed()
        return more

    def _leave(self, output: Output) -> None:
        """Stop reading an output."""
        self._events.unwatch(output.fd)
        with suppress(KeyError):
            self._filled.unregister(output.fd)

"""The output of the program."""

from __future__ import annotations

import os
import time
from typing import Final

_CHUNK: Final = 1 << 16
# How long output is still read after the program's end, in seconds. Everything else in the
# sandbox has been stopped by then, so the output is already in the pipes.
_DRAIN: Final = 1.0


class Output:
    """The supervisor's end of the pipe that is a program's stdout or stderr.

    ``limit`` bounds what is kept, in bytes.
    """

    def __init__(self, fd: int, limit: int) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self.data = bytearray()
        # over: there was more output than is kept. open: some process can still write.
        self.over = False
        self.open = True
        self._limit = limit

    def fill(self) -> None:
        """Read what has arrived, and keep as much of it as the limit allows."""
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

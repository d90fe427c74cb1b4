"""The output of the program."""

from __future__ import annotations

import os
import time
from typing import Final

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

"""Telling the server what the program prints while it runs."""

from __future__ import annotations

import time
from typing import Final

from fermata import frames
from fermata.output import Output
from fermata.servers import Servers

# Output that comes after a quiet moment of _QUIET seconds is told _SOON after it came, so that
# what is printed together is told together. Other output is told in the next quiet moment, and
# waits for it at most _LONGEST.
_QUIET: Final = 0.01
_SOON: Final = 0.001
_LONGEST: Final = 0.05

_STREAMS: Final = (frames.STDOUT, frames.STDERR)


class Teller:
    """Tells one server after the other what was read of stdout and stderr, from the beginning.

    A server that is slow is told more when it takes more. The output waits where it is kept.
    """

    def __init__(self, servers: Servers, outputs: tuple[Output, Output]) -> None:
        self._servers = servers
        self._outputs = outputs
        # How many bytes of each output this server was told.
        self._told = [0, 0]
        # When to tell what is untold; None if nothing is, or if the server has to take something first.
        self.tell_at: float | None = None
        self._latest = 0.0
        # When something was read last.
        self._read_at = 0.0
        # Whether output waits for the server to take more.
        self._waits = False

    def note(self) -> None:
        """Note that something has been read. If that makes a whole piece, tell it now."""
        now = time.monotonic()
        if self.tell_at is None:
            self._latest = now + (_SOON if now - self._read_at >= _QUIET else _LONGEST)
        self._read_at = now
        self.tell_at = min(now + _QUIET, self._latest)
        if self._untold(0) + self._untold(1) >= frames.MAX_OUTPUT:
            self.tell()

    def until_due(self, left: float | None) -> float | None:
        """Return how many of the seconds that are left may pass before something is to be told."""
        if self.tell_at is None:
            return left
        due = max(0.0, self.tell_at - time.monotonic())
        return due if left is None else min(left, due)

    def tell_if_due(self) -> None:
        """Tell what is untold, if it is time to."""
        if self.tell_at is not None and self.tell_at <= time.monotonic():
            self.tell()

    def tell(self) -> None:
        """Tell what is untold, as much as the server takes at once."""
        self.tell_at, self._waits = None, False
        for number in (0, 1):
            while self._untold(number):
                if not self._servers.takes_more:
                    self._waits = True
                    return
                self._servers.say(self._next(number))

    def rest(self) -> bytes:
        """Return the frames of all that is untold. It counts as told then."""
        self.tell_at = None
        rest = []
        for number in (0, 1):
            while self._untold(number):
                rest.append(self._next(number))
        return b"".join(rest)

    def room(self) -> None:
        """Tell more to a server that takes more."""
        if self._waits:
            self.tell()

    def restart(self) -> None:
        """Begin again with another server."""
        self._told = [0, 0]

    def stop(self) -> None:
        """Tell no more."""
        self.tell_at, self._waits = None, False

    def _untold(self, number: int) -> int:
        return len(self._outputs[number].data) - self._told[number]

    def _next(self, number: int) -> bytes:
        """Return the frame of the next piece."""
        told = self._told[number]
        piece = self._outputs[number].data[told : told + frames.MAX_OUTPUT]
        self._told[number] += len(piece)
        return frames.encode(frames.OUTPUT, frames.OUTPUT_HEAD.pack(_STREAMS[number], told) + piece)

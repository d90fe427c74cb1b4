"""Sends what the program prints to the server while the program runs."""

from __future__ import annotations

import time
from typing import Final

from fermata import frames
from fermata.output import Output
from fermata.servers import Servers

# Output that comes after a quiet moment of _QUIET seconds is sent _SOON after it came, so that
# what is printed together is sent together. Other output is sent in the next quiet moment, for
# which it waits at most _LONGEST.
_QUIET: Final = 0.01
_SOON: Final = 0.001
_LONGEST: Final = 0.05

_STREAMS: Final = (frames.STDOUT, frames.STDERR)


class Teller:
    """Sends what was read of stdout and stderr to one server after the other, from the beginning.

    A slow server gets more when it can take more. Until then the output stays in its Output.
    """

    def __init__(self, servers: Servers, outputs: tuple[Output, Output]) -> None:
        self._servers = servers
        self._outputs = outputs
        # How many bytes of each output were sent to this server.
        self._told = [0, 0]
        # When to send what was not sent yet; None if there is nothing, or if the server must take something first.
        self.tell_at: float | None = None
        self._latest = 0.0
        # When something was read last.
        self._read_at = 0.0
        # Whether output waits until the server can take more.
        self._waits = False

    def note(self) -> None:
        """Note that something was read. If that completes a piece, send it now."""
        now = time.monotonic()
        if self.tell_at is None:
            self._latest = now + (_SOON if now - self._read_at >= _QUIET else _LONGEST)
        self._read_at = now
        self.tell_at = min(now + _QUIET, self._latest)
        if self._untold(0) + self._untold(1) >= frames.MAX_OUTPUT:
            self.tell()

    def until_due(self, left: float | None) -> float | None:
        """Return how many of the seconds that are left may pass before something must be sent."""
        if self.tell_at is None:
            return left
        due = max(0.0, self.tell_at - time.monotonic())
        return due if left is None else min(left, due)

    def tell_if_due(self) -> None:
        """Send what was not sent yet, if it is time for that."""
        if self.tell_at is not None and self.tell_at <= time.monotonic():
            self.tell()

    def tell(self) -> None:
        """Send what was not sent yet, as much as the server can take at once."""
        self.tell_at, self._waits = None, False
        for number in (0, 1):
            while self._untold(number):
                if not self._servers.takes_more:
                    self._waits = True
                    return
                self._servers.say(self._next(number))

    def rest(self) -> bytes:
        """Return the frames of everything that was not sent yet. From then on it counts as sent."""
        self.tell_at = None
        rest = []
        for number in (0, 1):
            while self._untold(number):
                rest.append(self._next(number))
        return b"".join(rest)

    def room(self) -> None:
        """Send more to a server that can take more."""
        if self._waits:
            self.tell()

    def restart(self) -> None:
        """Begin again with another server."""
        self._told = [0, 0]

    def stop(self) -> None:
        """Send nothing more."""
        self.tell_at, self._waits = None, False

    def _untold(self, number: int) -> int:
        return len(self._outputs[number].data) - self._told[number]

    def _next(self, number: int) -> bytes:
        """Return the frame of the next piece."""
        told = self._told[number]
        piece = self._outputs[number].data[told : told + frames.MAX_OUTPUT]
        self._told[number] += len(piece)
        return frames.encode(frames.OUTPUT, frames.OUTPUT_HEAD.pack(_STREAMS[number], told) + piece)

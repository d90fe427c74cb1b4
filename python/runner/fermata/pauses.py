"""Pauses: the program stands still, and what it runs all the same is counted."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from fermata import frames
from fermata.stopping import Stopper

# When the supervisor first looks whether a program has stopped, in seconds. It doubles the time
# after each look, up to the longest one. Programs that can wake are looked at for the whole pause.
_FIRST_LOOK: Final = 0.001
_LAST_LOOK: Final = 1.0
# The processor time between two looks that is too short to be counted, in nanoseconds.
_UNSEEN: Final = 5_000_000


class Meter:
    """Counts the time for which the program ran and no server counted, in nanoseconds.

    A server counts the time from its answer to the next calls itself. It does not see what runs
    in a pause, nor the time that passes while there is no server.
    """

    def __init__(self) -> None:
        self.ran = 0
        # When the last server left; None while nothing is counted.
        self._left: int | None = None

    def leave(self) -> None:
        """Begin to count: the server, which would, has gone."""
        self._left = time.monotonic_ns()

    def settle(self) -> None:
        """Stop counting: there is a server again, or the program does not run any more."""
        if self._left is not None:
            self.ran += time.monotonic_ns() - self._left
            self._left = None

    def take(self) -> int:
        """Return what has been counted, for a server to add it up, and begin again at zero."""
        ran, self.ran = self.ran, 0
        return ran


class Pauses:
    """Stops the program and watches over it until it may go on.

    ``say`` tells the server something and returns False if there is no server.
    """

    def __init__(self, stopper: Stopper, meter: Meter, say: Callable[[bytes], bool]) -> None:
        self._stopper = stopper
        self._meter = meter
        self._say = say
        # Whether the program was told to stop, and whether it has been seen to have stopped.
        self._stopped = False
        self._still = False
        # The payload of the STOPPED that the server waits for.
        self._answer: bytes | None = None
        # When to look at the program again, and how many seconds after that look to look again.
        self.look_at: float | None = None
        self._pace = _FIRST_LOOK
        # The processor time that the program had used at the last look, in nanoseconds.
        self._used = 0

    def stop(self, answer: bytes | None) -> None:
        """Stop the program. With an answer the server is told, once the program has stopped."""
        self._answer = answer
        if self._stopped:
            self.look()
            return
        self._stopped, self._still, self._pace = True, False, _FIRST_LOOK
        self._stopper.stop()
        self.look_at = time.monotonic() + self._pace

    def until_look(self, left: float | None) -> float | None:
        """Return how many of the seconds that are left may pass before the next look."""
        if self.look_at is None:
            return left
        look = max(0.0, self.look_at - time.monotonic())
        return look if left is None else min(left, look)

    def look(self) -> None:
        """Look whether the program has stopped, or what it has used since it had stopped."""
        if self._still:
            self._count()
        elif self._stopper.stopped():
            self._still, self._pace, self._used = True, _LAST_LOOK, self._stopper.used()
        if self._still and not self._stopper.wakes:
            self.look_at = None
        else:
            self._stopper.stop()
            self._pace = min(2 * self._pace, _LAST_LOOK)
            self.look_at = time.monotonic() + self._pace
        if self._still:
            self._meter.settle()
            if self._answer is not None:
                self._say(frames.encode(frames.STOPPED, self._answer))
                self._answer = None

    def look_if_due(self) -> None:
        """Look, if it is time to."""
        if self.look_at is not None and self.look_at <= time.monotonic():
            self.look()

    def forget_answer(self) -> None:
        """Tell nobody that the program has stopped: the server that asked for it has gone."""
        self._answer = None

    def go_on(self) -> None:
        """Let the program continue, after a last look at what it has used."""
        if self._stopped and self._still and self._stopper.wakes:
            self._count()
        self.release()

    def release(self) -> None:
        """Let what was stopped move again, or die if it was killed."""
        if self._stopped:
            self._stopped, self.look_at, self._answer = False, None, None
            self._stopper.go()

    def _count(self) -> None:
        """Count the processor time since the last look, and tell the server, if there is one."""
        used = self._stopper.used()
        if used - self._used > _UNSEEN:
            self._meter.ran += used - self._used
        self._used = used
        if self._meter.ran and self._say(frames.encode(frames.RAN, b"%d" % self._meter.ran)):
            self._meter.take()

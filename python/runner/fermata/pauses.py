"""Pauses: the program is stopped, and the time for which it runs nevertheless is counted."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from fermata import frames
from fermata.stopping import Stopper

# After how many seconds the supervisor first checks whether a program has stopped. The time is
# doubled after each check, up to a maximum. A program that can wake up is checked during the whole
# pause.
_FIRST_LOOK: Final = 0.001
_LAST_LOOK: Final = 1.0
# The processor time between two checks that is too short to be counted, in nanoseconds.
_UNSEEN: Final = 5_000_000


class Meter:
    """Counts the time for which the program ran without being counted by a server, in nanoseconds.

    A server itself counts the time from the results that it sends to the next calls. It does not
    count what runs in a pause, nor the time that passes while there is no server.
    """

    def __init__(self) -> None:
        self.ran = 0
        # When the last server left; None while nothing is counted.
        self._left: int | None = None

    def leave(self) -> None:
        """Begin to count, since the server has gone."""
        self._left = time.monotonic_ns()

    def settle(self) -> None:
        """Stop counting, since there is a server again, or the program does not run any more."""
        if self._left is not None:
            self.ran += time.monotonic_ns() - self._left
            self._left = None

    def take(self) -> int:
        """Return the counted time, which a server adds up, and begin again at zero."""
        ran, self.ran = self.ran, 0
        return ran


class Pauses:
    """Stops the program and watches it until it may continue.

    ``say`` sends a frame to the server and returns False if there is no server.
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
        # When to check the program again, and how many seconds after that check to check again.
        self.look_at: float | None = None
        self._pace = _FIRST_LOOK
        # The processor time that the program had used at the last check, in nanoseconds.
        self._used = 0

    def stop(self, answer: bytes | None) -> None:
        """Stop the program. If there is an answer, the server gets it when the program has stopped."""
        self._answer = answer
        if self._stopped:
            self.look()
            return
        self._stopped, self._still, self._pace = True, False, _FIRST_LOOK
        self._stopper.stop()
        self.look_at = time.monotonic() + self._pace

    def until_look(self, left: float | None) -> float | None:
        """Return how many of the seconds that are left may pass before the next check."""
        if self.look_at is None:
            return left
        look = max(0.0, self.look_at - time.monotonic())
        return look if left is None else min(left, look)

    def look(self) -> None:
        """Check whether the program has stopped. If it had, count what it has used since."""
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
        """Check the program, if it is time for that."""
        if self.look_at is not None and self.look_at <= time.monotonic():
            self.look()

    def forget_answer(self) -> None:
        """Do not report that the program has stopped, since the server that asked for it has gone."""
        self._answer = None

    def go_on(self) -> None:
        """Let the program continue, after a last count of what it has used."""
        if self._stopped and self._still and self._stopper.wakes:
            self._count()
        self.release()

    def release(self) -> None:
        """Let the stopped processes continue, or die if they were killed."""
        if self._stopped:
            self._stopped, self.look_at, self._answer = False, None, None
            self._stopper.go()

    def _count(self) -> None:
        """Count the processor time since the last check, and tell the server, if there is one."""
        used = self._stopper.used()
        if used - self._used > _UNSEEN:
            self._meter.ran += used - self._used
        self._used = used
        if self._meter.ran and self._say(frames.encode(frames.RAN, b"%d" % self._meter.ran)):
            self._meter.take()

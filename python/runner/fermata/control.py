"""The supervisor's end of the stream to its worker, which runs a hostile program."""

from __future__ import annotations

import select
from collections.abc import Callable

from fermata import frames
from fermata.events import Events, Link
from fermata.frames import Channel, Frame, ProtocolError


class Control:
    """Takes one frame of the worker at a time, and the next one only after an answer.

    While the program is paused, nothing else that the worker has sent is read, since a hostile program
    can send frames of its own at any time.

    ``take`` gets each frame, and whether a part of the program still runs. It raises ProtocolError
    if the frame is not allowed now. ``broken`` is called after that, and when the worker has sent
    something that is not a frame. ``room`` is called when the worker has read something that had to
    wait.
    """

    def __init__(
        self,
        events: Events,
        channel: Channel,
        take: Callable[[Frame, bool], None],
        broken: Callable[[], None],
        room: Callable[[], None],
    ) -> None:
        self._link = Link(events, channel, self._on_event)
        self._take = take
        self._broken = broken
        self._room = room
        # Whether it is the worker's turn to speak.
        self._expects = True
        # Whether the worker has said that a part of the program still runs.
        self._busy = False
        self._link.start()

    @property
    def backlog(self) -> bool:
        """Whether something still waits until the worker takes it."""
        return self._link.channel.backlog

    def send(self, frame: Frame) -> bool:
        """Pass a frame on to the worker. Return False if the worker has closed the stream."""
        try:
            self._link.send(frames.encode(*frame))
        except OSError:
            # If the worker has ended, its status will be noticed. Otherwise the run budget ends the program.
            return False
        return True

    def answer(self, frame: Frame) -> None:
        """Pass a frame on to the worker, whose turn it is to speak then."""
        self._expects = True
        self._link.start()
        if not self.send(frame):
            return
        try:
            # The next frame may have arrived together with the last one.
            self._hear()
        except ProtocolError:
            self._broken()

    def last_words(self) -> None:
        """Take a frame that the worker has sent just before its end, if it was its turn."""
        if not self._expects:
            return
        try:
            self._link.channel.fill()
            self._link.channel.fill()  # The first read may have been too small.
            self._hear()
        except (OSError, ProtocolError):
            # The worker's status says how it has ended.
            return

    def stop(self) -> None:
        """Take no more frames."""
        self._expects = False
        self._link.stop()

    def _on_event(self, mask: int) -> None:
        try:
            if mask & select.EPOLLOUT:
                self._link.flush()
                self._room()
            if not mask & ~select.EPOLLOUT:
                return
            if not self._expects:
                # What the worker sends, or that it has ended, is handled later.
                self._link.stop()
                return
            alive = self._link.channel.fill()
            self._hear()
        except OSError:
            alive = False
        except ProtocolError:
            self._broken()
            return
        if not alive:
            # If the worker has ended, its status will be noticed.
            self._link.stop()

    def _hear(self) -> None:
        if not self._expects:
            return
        while (frame := self._link.channel.next()) is not None and frame.kind == frames.BUSY:
            self._busy = True
        if frame is not None:
            busy = self._busy
            self._expects = self._busy = False
            self._take(frame, busy)

"""The supervisor's talk with servers: one at a time, one after the other.

A server can die at any moment, and another one takes over. So the supervisor keeps what it has
told the server since the server last spoke, and tells it again to the next one.
"""

from __future__ import annotations

import select
import socket
import time
from typing import Protocol

from fermata import frames
from fermata.events import Events, Link
from fermata.frames import Channel, Frame, ProtocolError


class Owner(Protocol):
    """Does what servers ask for."""

    def attached(self) -> None:
        """A server has attached: what another one has asked for needs no answer any more."""

    def hello(self) -> bytes | None:
        """Return the payload of the hello, or None as long as the sandbox is not ready."""

    def obey(self, frame: Frame) -> None:
        """Do what a frame of the server says. Raises ProtocolError if this is not its time."""

    def greeted(self) -> None:
        """The server has its hello. Afterwards it is told again what was kept."""

    def room(self) -> None:
        """The server takes more, after something had to wait for it."""

    def left(self, replaced: bool) -> None:
        """The server has gone, or has been replaced by a newer one."""


class Servers:
    """The server that is there now, and what the next one has to hear.

    Servers connect to ``listener``. Without it ``stream`` is the only stream there is: servers
    use it one after the other, and each of them begins wherever the one before it died. Without a
    server the sandbox is of no more use after ``orphan`` seconds; on the one stream, a server
    that says nothing for that long has gone.
    """

    def __init__(
        self, events: Events, owner: Owner, orphan: float, listener: socket.socket | None, stream: Channel | None
    ) -> None:
        self._events = events
        self._owner = owner
        self._orphan = orphan
        self._listener = listener
        self._link: Link | None = None
        # Whether the server has attached; before, it is told nothing.
        self.attached = False
        # Whether the server has attached and waits for its hello.
        self.greets = False
        # What the server's ATTACH carried. It finds the hello by this mark, however much of what
        # was meant for the server before it comes first.
        self._marker = b""
        self._kept: list[bytes] = []
        self._deadline = time.monotonic() + orphan
        if listener is not None:
            listener.setblocking(False)
            events.watch(listener.fileno(), self._accept)
        if stream is not None:
            self._link = Link(events, stream, self._on_event)
            self._link.start()

    @property
    def can_return(self) -> bool:
        """Whether another server can come after this one has gone."""
        return self._listener is not None

    @property
    def _greeted(self) -> bool:
        """Whether the server has been said hello to; before, it is told nothing."""
        return self.attached and not self.greets

    def time_left(self) -> float | None:
        """Return after how many seconds no server is to be expected any more, None with a server."""
        if self.attached and self._listener is not None:
            return None
        return max(0.0, self._deadline - time.monotonic())

    def tell(self, what: bytes, before: bytes = b"") -> None:
        """Send whole frames that every server has to hear, up to the one that answers them.

        Servers hear these frames in the order of the calls of this method. This server alone
        hears others ``before``.
        """
        self._kept.append(what)
        self.say(before + what)

    def say(self, what: bytes) -> bool:
        """Send whole frames that only this server has to hear. Return False if there is no server."""
        if self._link is None or not self._greeted:
            return False
        try:
            self._link.send(what)
        except OSError:
            self._drop()
            return False
        return True

    @property
    def takes_more(self) -> bool:
        """Whether there is a server, and it has taken all that was said."""
        return self._link is not None and self._greeted and not self._link.channel.backlog

    def reply(self, what: bytes) -> bool:
        """Answer the server's last frame. Return whether the server takes more at once.

        Raises OSError if the server has gone.
        """
        assert self._link is not None
        self._link.send(what)
        return not self._link.channel.backlog

    def answered(self) -> None:
        """Forget what was kept: the server has heard it, and has answered."""
        self._kept.clear()

    def listen(self, listens: bool) -> None:
        """Choose whether the server is listened to, or has to wait."""
        if self._link is not None:
            self._link.listen(listens)

    def greet(self) -> None:
        """Say hello to a server that has attached, if the sandbox is ready, and repeat what was kept."""
        if self._link is None or (hello := self._owner.hello()) is None:
            return
        self.greets = False
        self.say(self._marker + frames.encode(frames.HELLO, hello))
        self._owner.greeted()
        for kept in self._kept:
            self.say(kept)

    def close(self) -> None:
        """Close the stream to the server."""
        if self._link is not None:
            self._link.close()
            self._link = None

    def _accept(self, mask: int) -> None:
        assert self._listener is not None
        try:
            stream, _ = self._listener.accept()
        except OSError:
            return
        # The newest server is the one that counts.
        self._drop(replaced=True)
        fd = stream.detach()
        self._link = Link(self._events, Channel(fd, fd, frames.MAX_FROM_SERVER), self._on_event)
        self._link.start()

    def _on_event(self, mask: int) -> None:
        if (link := self._link) is None:
            return
        channel = link.channel
        try:
            if mask & select.EPOLLOUT:
                link.flush()
                if not channel.backlog:
                    self._owner.room()
            alive = channel.fill() if mask & ~select.EPOLLOUT else True
            while (frame := channel.next()) is not None:
                self._deadline = time.monotonic() + self._orphan
                if frame.kind == frames.ATTACH:
                    self._attach(frame, channel)
                else:
                    self._owner.obey(frame)
        except ProtocolError:
            # On a shared stream, what follows may come from another server.
            alive = channel.skip()
        except OSError:
            alive = False
        if not alive:
            self._drop()

    def _attach(self, frame: Frame, channel: Channel) -> None:
        self.attached = self.greets = True
        self._owner.attached()
        self._marker = frame.payload
        if self._listener is None and self._marker:
            channel.mark(frames.encode(*frame))

    def _drop(self, replaced: bool = False) -> None:
        if self._link is None:
            return
        self.close()
        self.attached = self.greets = False
        self._deadline = time.monotonic() + self._orphan
        self._owner.left(replaced)

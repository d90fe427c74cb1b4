"""The supervisor's connection to servers: there is one at a time, and several one after the other.

A server can die at any moment, and another one takes over. So the supervisor keeps the frames that
it has sent since the last frame of the server, and sends them again to the next server.
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
    """Does what servers ask for; the supervisor implements it."""

    def attached(self) -> None:
        """A server has attached. Questions of another server need no answer any more."""

    def hello(self) -> bytes | None:
        """Return the payload of the hello, or None while the sandbox is not ready."""

    def obey(self, frame: Frame) -> None:
        """Do what a frame of the server says. Raises ProtocolError if the frame is not allowed now."""

    def greeted(self) -> None:
        """The server has got its hello. Afterwards the kept frames are sent again."""

    def room(self) -> None:
        """The server can take more, after something had to wait for it."""

    def left(self, replaced: bool) -> None:
        """The server has gone, or has been replaced by a newer one."""


class Servers:
    """The present server, and the frames that the next one must get.

    Servers connect to ``listener``. Without it, ``stream`` is the only stream: servers use it one
    after the other, and each of them begins at the place where the server before it died. After
    ``orphan`` seconds without a server the sandbox is not needed any more. On the only stream, a
    server that sends nothing for that long is considered to be gone.
    """

    def __init__(
        self, events: Events, owner: Owner, orphan: float, listener: socket.socket | None, stream: Channel | None
    ) -> None:
        self._events = events
        self._owner = owner
        self._orphan = orphan
        self._listener = listener
        self._link: Link | None = None
        # Whether the server has attached. Before that, nothing is sent to it.
        self.attached = False
        # Whether the server has attached and waits for its hello.
        self.greets = False
        # The payload of the server's ATTACH. By this mark the server finds the hello, which may be
        # preceded by frames for the server before it.
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
        """Whether the hello was sent to the server. Before that, nothing else is sent to it."""
        return self.attached and not self.greets

    def time_left(self) -> float | None:
        """Return after how many seconds no server can be expected any more, or None if there is a server."""
        if self.attached and self._listener is not None:
            return None
        return max(0.0, self._deadline - time.monotonic())

    def tell(self, what: bytes, before: bytes = b"") -> None:
        """Send whole frames that every server must get, up to the server that answers them.

        Servers get these frames in the order of the calls of this method. Only the present server also
        gets the frames ``before`` them.
        """
        self._kept.append(what)
        self.say(before + what)

    def say(self, what: bytes) -> bool:
        """Send whole frames that only the present server must get. Return False if there is no server."""
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
        """Whether there is a server, and it has taken everything that was sent."""
        return self._link is not None and self._greeted and not self._link.channel.backlog

    def reply(self, what: bytes) -> bool:
        """Answer the server's last frame. Return whether the server can take more at once.

        Raises OSError if the server has gone.
        """
        assert self._link is not None
        self._link.send(what)
        return not self._link.channel.backlog

    def answered(self) -> None:
        """Drop the kept frames, since the server has got and answered them."""
        self._kept.clear()

    def listen(self, listens: bool) -> None:
        """Choose whether frames of the server are read, or have to wait."""
        if self._link is not None:
            self._link.listen(listens)

    def greet(self) -> None:
        """Send the hello to a server that has attached, if the sandbox is ready, and repeat the kept frames."""
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
        # The newest server replaces the one before it.
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

"""The supervisor's event loop: descriptors, and the channels that use them."""

from __future__ import annotations

import select
from collections.abc import Callable

from fermata.frames import Channel

# A handler is called with the epoll mask of the events of a descriptor.
Handler = Callable[[int], None]


class Events:
    """Waits for descriptors and calls their handlers."""

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._handlers: dict[int, Handler] = {}

    def watch(self, fd: int, handler: Handler, mask: int = select.EPOLLIN) -> None:
        """Call the handler for these events, in place of what this descriptor was watched for before."""
        if fd in self._handlers:
            self._poll.modify(fd, mask)
        else:
            self._poll.register(fd, mask)
        self._handlers[fd] = handler

    def unwatch(self, fd: int) -> None:
        """Stop watching a descriptor, if it was watched."""
        if self._handlers.pop(fd, None) is not None:
            self._poll.unregister(fd)

    def wait(self, seconds: float | None) -> None:
        """Wait for events, at most this long, and call their handlers."""
        for fd, mask in self._poll.poll(seconds):
            # An earlier handler may have closed this descriptor.
            if (handler := self._handlers.get(fd)) is not None:
                handler(mask)

    def close(self) -> None:
        """Close the event loop's own descriptor."""
        self._poll.close()


class Link:
    """A channel in an event loop.

    The handler is called when frames have arrived, and when the peer has room for what waits to be
    written. If nothing changes no system call is made, since links are used in every round.
    """

    def __init__(self, events: Events, channel: Channel, handler: Handler) -> None:
        self.channel = channel
        self._events = events
        self._handler = handler
        self._watched = False
        self._listens = True
        # Whether the handler is called when the peer takes more.
        self._writes = False

    def start(self) -> None:
        """Call the handler from now on."""
        if not self._watched:
            self._watched = True
            self._renew()

    def stop(self) -> None:
        """Call the handler no more, not even if the peer has gone."""
        self._watched = False
        self._events.unwatch(self.channel.read_fd)
        self._events.unwatch(self.channel.write_fd)

    def listen(self, listens: bool) -> None:
        """Choose whether the handler is called when frames have arrived.

        It is called in any case when the peer has gone.
        """
        if listens != self._listens:
            self._listens = listens
            self._renew()

    def send(self, data: bytes) -> None:
        """Send whole frames. Raises OSError if the peer has gone."""
        self.channel.send(data)
        if self.channel.backlog != self._writes:
            self._renew()

    def flush(self) -> None:
        """Write as much of what waits as the peer takes. Raises OSError if the peer has gone."""
        self.channel.flush()
        if self.channel.backlog != self._writes:
            self._renew()

    def close(self) -> None:
        """Close the channel."""
        self.stop()
        self.channel.close()

    def _renew(self) -> None:
        read, write = self.channel.read_fd, self.channel.write_fd
        self._writes = self.channel.backlog
        reading = select.EPOLLIN if self._listens else 0
        writing = select.EPOLLOUT if self._writes else 0
        if read == write:
            self._events.watch(read, self._handler, reading | writing)
            return
        self._events.watch(read, self._handler, reading)
        if writing:
            self._events.watch(write, self._handler, writing)
        else:
            self._events.unwatch(write)

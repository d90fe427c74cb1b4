"""The supervisor's event loop, and channels in it."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Iterator

import pytest

from fermata import frames
from fermata.events import Events, Link
from fermata.frames import Channel

LARGE = frames.encode(frames.CONTENT, bytes(1 << 20))


class Talk:
    """A link to a peer over a socket or over two pipes, as a container has them, and what its handler has seen."""

    def __init__(self, pipes: bool) -> None:
        if pipes:
            read, self.send_fd = os.pipe()
            self.receive_fd, write = os.pipe()
        else:
            read, self.send_fd = (end.detach() for end in socket.socketpair())
            write, self.receive_fd = read, self.send_fd
        os.set_blocking(self.receive_fd, False)
        self.events = Events()
        self.masks: list[int] = []
        self.link = Link(self.events, Channel(read, write, 1000), self._handle)
        self.link.start()

    def _handle(self, mask: int) -> None:
        self.masks.append(mask)
        if mask & select.EPOLLOUT:
            self.link.flush()
        if mask & select.EPOLLIN:
            self.link.channel.fill()

    def heard(self) -> bool:
        """Whether the handler is called within a short time."""
        self.masks.clear()
        self.events.wait(0.01)
        return bool(self.masks)

    def close(self) -> None:
        self.link.close()
        self.events.close()
        for fd in {self.send_fd, self.receive_fd}:
            os.close(fd)


@pytest.fixture(name="talk", params=[False, True], ids=["socket", "pipes"])
def _talk(request: pytest.FixtureRequest) -> Iterator[Talk]:
    talk = Talk(request.param)
    yield talk
    talk.close()


def test_what_waits_is_written_when_the_peer_takes_more(talk: Talk) -> None:
    for _ in range(2):
        talk.link.send(LARGE)
        assert talk.link.channel.backlog
        assert not talk.heard(), "the handler is called although the peer takes nothing"
        received = b""
        while len(received) < len(LARGE):
            received += os.read(talk.receive_fd, 1 << 16)
            talk.events.wait(0)
        assert received == LARGE
        assert not talk.link.channel.backlog
        assert not talk.heard(), "the handler is called although nothing waits"


def test_a_peer_that_is_not_listened_to(talk: Talk) -> None:
    os.write(talk.send_fd, b"x")
    talk.link.listen(False)
    assert not talk.heard()
    talk.link.listen(True)
    assert talk.heard()


def test_a_link_that_is_stopped(talk: Talk) -> None:
    talk.link.send(LARGE)
    os.write(talk.send_fd, b"x")
    talk.link.stop()
    os.read(talk.receive_fd, 1 << 20)
    assert not talk.heard()
    talk.link.start()
    assert talk.heard()


def test_an_earlier_handler_closes_a_descriptor() -> None:
    events = Events()
    (a, others), (b, peers) = socket.socketpair(), socket.socketpair()
    called: list[int] = []
    for here, there in ((a, b), (b, a)):

        def handle(mask: int, here: socket.socket = here, there: socket.socket = there) -> None:
            called.append(here.fileno())
            events.unwatch(there.fileno())

        events.watch(here.fileno(), handle)
    others.send(b"x")
    peers.send(b"x")
    events.wait(1)
    assert len(called) == 1
    events.close()
    for end in (a, b, others, peers):
        end.close()

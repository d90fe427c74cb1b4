"""The supervisor of a container, whose servers share one stream, and what belongs to it."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervised import Stopper

from fermata import container, frames, sandbox
from fermata.frames import Channel, Decoder, Frame
from fermata.supervisor import Supervisor, Worker

MARKER = bytes(range(200, 216))
ATTACH = frames.encode(frames.ATTACH, MARKER)


def feed(decoder: Decoder, data: bytes, size: int) -> None:
    for start in range(0, len(data), size):
        decoder.feed(data[start : start + size])


@given(st.binary(max_size=200), st.integers(1, 50))
def test_a_mark_is_found_after_anything(before: bytes, size: int) -> None:
    decoder = Decoder(1000)
    decoder.mark(ATTACH)
    feed(decoder, before + ATTACH + frames.encode(frames.KILL, b"x"), size)
    assert decoder.next() == Frame(frames.ATTACH, MARKER)
    assert decoder.next() == Frame(frames.KILL, b"x")
    assert decoder.next() is None


@given(st.binary(max_size=200), st.integers(1, 50))
def test_what_was_lost_is_dropped_up_to_the_mark(before: bytes, size: int) -> None:
    decoder = Decoder(1000)
    decoder.mark(ATTACH)
    assert decoder.skip()
    feed(decoder, before + ATTACH[:-1], size)
    assert decoder.next() is None
    decoder.feed(ATTACH[-1:])
    assert decoder.next() == Frame(frames.ATTACH, MARKER)


def test_without_a_mark_there_is_nothing_to_wait_for() -> None:
    assert not Decoder(1000).skip()


class Container:
    """A supervisor with pipes for a stream, as a container's first process has."""

    def __init__(self, orphan: float) -> None:
        stdin, self.stdin = os.pipe()
        self.stdout, stdout = os.pipe()
        self.worker, control = socket.socketpair()
        self.worker.settimeout(10)
        output, self.output = os.pipe()
        status, self.status = os.pipe()
        self._fds = [stdin, self.stdout, stdout, output, self.output, status, self.status, control.detach()]
        fd = self._fds[-1]
        self._supervisor = Supervisor(
            Worker(
                Channel(fd, fd, frames.MAX_FROM_WORKER),
                output,
                os.dup(output),
                sandbox.PipeStatus(status),
                lambda: 0,
                Stopper(),
            ),
            1000,
            orphan,
            stream=Channel(stdin, stdout, frames.MAX_FROM_SERVER),
        )
        self.thread = threading.Thread(target=self._supervisor.run, daemon=True)
        self.thread.start()

    def write(self, data: bytes) -> None:
        os.write(self.stdin, data)

    def read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            data += os.read(self.stdout, size - len(data))
        return data

    def receive(self) -> Frame:
        length, kind = frames.HEADER.unpack(self.read(frames.HEADER.size))
        return Frame(kind, self.read(length))

    def attach(self) -> dict[str, Any]:
        self.write(ATTACH)
        assert self.read(len(MARKER)) == MARKER
        kind, payload = self.receive()
        assert kind == frames.HELLO
        hello: dict[str, Any] = json.loads(payload)
        return hello

    def pause(self) -> None:
        self.worker.sendall(frames.encode(frames.READY, b'{"python": "3.x"}'))
        assert self.attach()["state"] == "ready"
        self.write(frames.encode(frames.PROGRAM, b"p"))
        assert self.worker.recv(100) == frames.encode(frames.PROGRAM, b"p")
        self.worker.sendall(frames.encode(frames.CALLS, b"[1]"))
        assert self.receive() == Frame(frames.CALLS, b"[1]")

    def ended(self) -> bool:
        self.thread.join(10)
        return not self.thread.is_alive()

    def close(self) -> None:
        self.worker.close()
        if self.stdin >= 0:
            os.close(self.stdin)
        assert self.ended()


@pytest.fixture
def paused() -> Iterator[Container]:
    c = Container(orphan=60)
    c.pause()
    yield c
    c.close()


@pytest.mark.parametrize(
    "last_words",
    [
        b"",
        frames.encode(frames.RESULTS, bytes(1000))[:500],
        frames.HEADER.pack(100 << 20, frames.RESULTS),
        ATTACH[:10],
        b"\xff" * 100,
        frames.encode(frames.PROGRAM, b"out of turn"),
        frames.encode(99, b"unknown"),
    ],
    ids=["none", "half a frame", "a header", "half an attach", "noise", "out of turn", "unknown"],
)
def test_another_server_comes_on_the_same_stream(paused: Container, last_words: bytes) -> None:
    paused.write(last_words)
    for _ in range(2):
        hello = paused.attach()
        assert (hello["state"], hello["round"]) == ("paused", 1)
        assert paused.receive() == Frame(frames.CALLS, b"[1]")
    paused.write(frames.encode(frames.RESULTS, b"r"))
    assert paused.worker.recv(100) == frames.encode(frames.RESULTS, b"r")


def test_the_end_of_the_stream_is_the_end(paused: Container) -> None:
    os.close(paused.stdin)
    paused.stdin = -1
    assert paused.ended()


@pytest.mark.parametrize("attached", [False, True])
def test_a_server_that_says_nothing_is_gone(attached: bool) -> None:
    c = Container(orphan=0.3)
    if attached:
        c.pause()
    assert c.ended()
    c.close()


@pytest.mark.parametrize("signalled", [False, True], ids=["unnoticed", "noticed"])
def test_the_reaper_tells_how_the_worker_ended(signalled: bool) -> None:
    other = os.fork()
    if other == 0:
        os._exit(7)
    os.waitid(os.P_PID, other, os.WEXITED | os.WNOWAIT)
    worker = os.fork()
    if worker == 0:
        os._exit(3)
    reaper = container._Reaper(worker)
    assert select.select([reaper], [], [], 10)[0]
    if signalled:
        reaper.on_signal(signal.SIGCHLD, None)
        assert select.select([reaper], [], [], 0)[0], "the signal took the news away"
    assert reaper.read() == 3
    with pytest.raises(ChildProcessError):
        os.waitpid(other, 0)
    os.close(reaper.fileno())


def test_a_reaper_that_died_took_the_worker_with_it() -> None:
    read, write = os.pipe()
    os.close(write)
    assert sandbox.PipeStatus(read).read() == -signal.SIGKILL
    os.close(read)


def test_the_interpreter_is_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/opt/conda/bin/python3")
    assert sandbox.environment()["PATH"].split(":")[0] == "/opt/conda/bin"
    monkeypatch.setattr("sys.executable", "/usr/bin/python3")
    assert sandbox.environment() == sandbox.ENVIRONMENT

"""The supervisor's talk with servers, one after the other."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from supervised import OUTPUT, Sandbox, Server, Status, Stopper

from fermata import PROTOCOL, frames, states
from fermata.frames import Channel, Frame
from fermata.supervisor import Supervisor, Worker


def test_hello_waits_until_the_worker_is_ready(sandbox: Sandbox) -> None:
    server = sandbox.connect()
    server.send(frames.ATTACH)
    server.stream.settimeout(0.05)
    with pytest.raises(TimeoutError):
        server.receive()
    server.stream.settimeout(10)
    sandbox.say(frames.READY, {"python": "3.x"})
    kind, payload = server.receive()
    assert kind == frames.HELLO
    assert json.loads(payload) == {"protocol": PROTOCOL, "python": "3.x", "state": "ready", "round": 0, "ran": 0}


def test_marker_comes_before_the_hello(sandbox: Sandbox) -> None:
    sandbox.say(frames.READY, {"python": "3.x"})
    server = sandbox.connect()
    server.send(frames.ATTACH, b"marker")
    assert server.stream.recv(6, socket.MSG_WAITALL) == b"marker"
    assert server.receive().kind == frames.HELLO


def test_server_is_heard_after_files(sandbox: Sandbox) -> None:
    """A program may come while files are still on their way to the worker."""
    server = sandbox.ready()
    with socket.socket(fileno=os.dup(sandbox._channel.write_fd)) as control:
        control.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    content = os.urandom(100_000)
    # The end of the file and the program come at once, while the worker has not read.
    server.stream.sendall(frames.encode(frames.FILE, content) + frames.encode(frames.PROGRAM, b"program"))
    while sandbox._supervisor._state == states.READY:
        time.sleep(0.001)
    assert sandbox.hear() == Frame(frames.FILE, content)
    assert sandbox.hear() == Frame(frames.PROGRAM, b"program")
    server.send(frames.KILL)
    assert server.exit()[0]["killed"]


def test_next_server_hears_what_it_may_have_missed(sandbox: Sandbox) -> None:
    first = sandbox.paused()
    first.stream.close()
    second = sandbox.connect()
    hello = second.attach()
    assert hello.pop("ran") < 1_000_000_000
    assert hello == {"protocol": PROTOCOL, "python": "3.x", "state": "paused", "round": 1}
    assert second.receive() == Frame(frames.CALLS, b"[1]")
    second.send(frames.RESULTS, b"[]")
    assert sandbox.hear() == Frame(frames.RESULTS, b"[]")
    third = sandbox.connect()
    assert third.attach()["state"] == "running"
    sandbox.say(frames.DONE, {"exit": 3})
    # Nothing of the round that was answered comes again.
    assert third.receive() == Frame(frames.DONE, b'{"exit": 3}')
    assert third.exit()[0]["over"] == ""
    third.stream.close()
    fourth = sandbox.connect()
    assert fourth.attach() == {"protocol": PROTOCOL, "python": "3.x", "state": "ended", "round": 1, "ran": 0}
    assert fourth.receive() == Frame(frames.DONE, b'{"exit": 3}')
    assert fourth.exit()[0]["over"] == ""


def test_newest_server_counts(sandbox: Sandbox) -> None:
    first = sandbox.running()
    second = sandbox.connect()
    assert second.attach()["state"] == "running"
    assert first.gone()
    sandbox.say(frames.CALLS, [1])
    assert second.receive() == Frame(frames.CALLS, b"[1]")


def test_server_that_does_not_attach_is_told_nothing(sandbox: Sandbox) -> None:
    sandbox.running()
    server = sandbox.connect()
    sandbox.say(frames.CALLS, [1])
    assert server.attach()["round"] in (0, 1)
    assert server.receive() == Frame(frames.CALLS, b"[1]")


@pytest.mark.parametrize("kind", [frames.RESULTS, frames.HELLO, frames.CALLS, 0])
def test_server_breaks_the_protocol_before_a_program(sandbox: Sandbox, kind: int) -> None:
    server = sandbox.ready()
    server.send(kind)
    assert server.gone()
    assert sandbox.ended(), "a sandbox nobody knows of goes on"


@pytest.mark.parametrize("kind", [frames.PROGRAM, frames.RESULTS])
def test_server_breaks_the_protocol_of_a_running_program(sandbox: Sandbox, kind: int) -> None:
    server = sandbox.running()
    server.send(kind)
    assert server.gone()
    second = sandbox.connect()
    assert second.attach()["state"] == "running"
    sandbox.say(frames.CALLS, [1])
    assert second.receive() == Frame(frames.CALLS, b"[1]")


def test_frame_of_a_server_that_is_too_large(sandbox: Sandbox) -> None:
    server = sandbox.running()
    server.stream.sendall(frames.HEADER.pack(frames.MAX_FROM_SERVER + 1, frames.RESULTS))
    assert server.gone()


def test_server_leaves_before_a_program(sandbox: Sandbox) -> None:
    sandbox.ready().stream.close()
    assert sandbox.ended()


def test_orphan(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path, orphan=0.05)
    assert sandbox.ended(), "nobody ever came, and it still waits"
    sandbox.close()


def test_orphan_after_a_server(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path, orphan=0.3)
    server = sandbox.paused()
    # As long as a server is there it waits.
    time.sleep(0.4)
    assert sandbox.thread.is_alive()
    began = time.monotonic()
    server.stream.close()
    assert sandbox.ended()
    assert 0.25 < time.monotonic() - began
    sandbox.close()


def test_server_that_comes_back_in_time(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path, orphan=1.0)
    sandbox.paused().stream.close()
    time.sleep(0.1)
    assert sandbox.connect().attach()["state"] == "paused"
    time.sleep(1.1)
    assert sandbox.thread.is_alive()
    sandbox.close()


class Shared:
    """A supervisor whose servers use one stream, one after the other."""

    def __init__(self) -> None:
        stream, theirs = socket.socketpair()
        self.server = Server(stream)
        self.worker, control = socket.socketpair()
        self.worker.settimeout(10)
        channels = [Channel(s.fileno(), s.fileno(), frames.MAX_FROM_SERVER) for s in (control, theirs)]
        stdout, self._stdout = os.pipe()
        stderr, self._stderr = os.pipe()
        self.status = Status()
        worker = Worker(channels[0], stdout, stderr, self.status, lambda: 0, Stopper())
        self._supervisor = Supervisor(worker, OUTPUT, 5.0, stream=channels[1])
        self.thread = threading.Thread(target=self._supervisor.run, daemon=True)
        self.thread.start()
        self._fds = [stdout, stderr, self._stdout, self._stderr]
        self._sockets = [control, theirs]

    def attach(self, marker: bytes) -> dict[str, Any]:
        """Attach as a new server does: what was for another one is passed over."""
        self.server.send(frames.ATTACH, marker)
        seen = b""
        while not seen.endswith(marker):
            byte = self.server.stream.recv(1)
            assert byte, "the supervisor has gone"
            seen += byte
        kind, payload = self.server.receive()
        assert kind == frames.HELLO
        hello: dict[str, Any] = json.loads(payload)
        return hello

    def close(self) -> None:
        self.server.stream.close()
        self.thread.join(10)
        assert not self.thread.is_alive()
        self.worker.close()
        self.status.close()
        for fd in self._fds:
            os.close(fd)
        self._sockets[0].close()
        # The supervisor has closed the other one.
        self._sockets[1].detach()


def test_servers_share_a_stream() -> None:
    sandbox = Shared()
    marker = b"0123456789abcdef"
    sandbox.worker.sendall(frames.encode(frames.READY, b'{"python": "3.x"}'))
    assert sandbox.attach(marker)["state"] == "ready"
    sandbox.server.send(frames.PROGRAM, b"program")
    assert frames.receive(sandbox.worker) == Frame(frames.PROGRAM, b"program")
    sandbox.worker.sendall(frames.encode(frames.CALLS, b"[1]"))
    # This server dies before it reads the calls, and while it writes.
    sandbox.server.stream.sendall(frames.encode(frames.RESULTS, b"x" * 100)[:50])
    assert sandbox.attach(marker)["state"] in ("running", "paused")
    assert sandbox.server.receive() == Frame(frames.CALLS, b"[1]")
    sandbox.server.send(frames.RESULTS, b"[]")
    assert frames.receive(sandbox.worker) == Frame(frames.RESULTS, b"[]")
    # The next one breaks the protocol: what it says is passed over until another comes.
    sandbox.server.send(frames.HELLO, b"{}")
    sandbox.server.send(frames.KILL, b"")
    assert sandbox.attach(marker)["state"] == "running"
    sandbox.close()

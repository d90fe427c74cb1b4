"""The supervisor and what a worker sends."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import threading
import time
from pathlib import Path

import pytest
from supervised import Sandbox, sent

from fermata import frames
from fermata.frames import Frame


def test_large_frames(sandbox: Sandbox) -> None:
    server = sandbox.ready()
    program = os.urandom(3 << 20)
    sender = threading.Thread(target=server.send, args=[frames.PROGRAM, program])
    sender.start()
    assert sandbox.hear() == Frame(frames.PROGRAM, program)
    sender.join()
    text = "x" * (3 << 20)
    speaker = threading.Thread(target=sandbox.say, args=[frames.CALLS, text])
    speaker.start()
    assert server.receive() == Frame(frames.CALLS, json.dumps(text).encode())
    speaker.join()


@pytest.mark.parametrize("kind", [frames.READY, frames.PROGRAM, frames.HELLO, frames.EXIT, 0])
def test_worker_breaks_the_protocol(sandbox: Sandbox, signals: list[signal.Signals], kind: int) -> None:
    server = sandbox.running()
    sandbox.say(kind, {})
    head, _, _ = server.exit()
    assert head["broken"]
    sent(signals, [signal.SIGSTOP, signal.SIGKILL])


@pytest.mark.parametrize(
    "second",
    [frames.encode(frames.HELLO, b"{}"), frames.HEADER.pack(frames.MAX_FROM_WORKER + 1, frames.CALLS)],
    ids=["out of turn", "too large"],
)
def test_worker_breaks_the_protocol_behind_its_calls(sandbox: Sandbox, second: bytes) -> None:
    """The server that answers the calls is not to blame for what came with them."""
    server = sandbox.running()
    sandbox.worker.sendall(frames.encode(frames.CALLS, b"[1]") + second)
    assert server.receive() == Frame(frames.CALLS, b"[1]")
    server.send(frames.RESULTS, b"[]")
    assert server.exit()[0]["broken"]


def test_frame_of_the_worker_that_is_too_large(sandbox: Sandbox) -> None:
    server = sandbox.running()
    sandbox.worker.sendall(frames.HEADER.pack(frames.MAX_FROM_WORKER + 1, frames.CALLS))
    assert server.exit()[0]["broken"]


def test_one_frame_at_a_time_while_paused(sandbox: Sandbox, signals: list[signal.Signals]) -> None:
    server = sandbox.running()
    # A worker cannot speak while it is stopped, unless it has spoken before.
    told = [frames.encode(frames.BUSY, b""), frames.encode(frames.CALLS, b"[1]"), frames.encode(frames.CALLS, b"[2]")]
    sandbox.worker.sendall(b"".join(told))
    assert server.receive() == Frame(frames.CALLS, b"[1]")
    server.stream.settimeout(0.05)
    with pytest.raises(TimeoutError):
        server.receive()
    server.stream.settimeout(1)
    assert signals == [signal.SIGSTOP]
    server.send(frames.RESULTS, b"[]")
    assert sandbox.hear() == Frame(frames.RESULTS, b"[]")
    assert server.receive() == Frame(frames.CALLS, b"[2]")


def slow_descriptor() -> tuple[socket.socket, list[socket.socket]]:
    """Return a socket that takes three seconds to close: its peer reads nothing of what it has to send."""
    listener = socket.create_server(("127.0.0.1", 0))
    sender = socket.create_connection(listener.getsockname())
    peer, _ = listener.accept()
    sender.setblocking(False)
    with pytest.raises(BlockingIOError):
        while True:
            sender.send(bytes(1 << 16))
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3))
    sender.setblocking(True)
    return sender, [listener, peer]


@pytest.mark.parametrize("refused", [True, False])
def test_descriptors_of_a_worker(
    tmp_path: Path, signals: list[signal.Signals], monkeypatch: pytest.MonkeyPatch, refused: bool
) -> None:
    """Whatever a worker sends along, its supervisor goes on."""
    if not refused:  # as on Linux before 6.16
        monkeypatch.setattr(frames, "_SO_PASSRIGHTS", 10_000)
    sandbox = Sandbox(tmp_path)
    server = sandbox.paused()
    slow, others = slow_descriptor()
    # While the program is paused nobody reads it, so that the last copy is the one on its way.
    try:
        socket.send_fds(sandbox.worker, [frames.encode(frames.CALLS, b"[1]")], [slow.fileno()])
    except PermissionError:
        assert refused
        server.send(frames.KILL)
    else:
        slow.close()
    began = time.monotonic()
    server.send(frames.RESULTS, b"[]")
    head, _, _ = server.exit()
    assert time.monotonic() - began < 1, "to close a descriptor has held the supervisor up"
    assert head.get("killed") or head.get("broken")
    for each in (*others, slow):
        each.close()
    sandbox.close()

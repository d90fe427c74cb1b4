"""Tests of frames and of the channel that carries them."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermata import calls, frames, program
from fermata.frames import Channel, Decoder, Frame, ProtocolError

SHARED: dict[str, Any] = json.loads(
    (Path(__file__).parent.parent / "testdata" / "frames.json").read_text(encoding="utf-8")
)
LIMITS = {"server": frames.MAX_FROM_SERVER, "sandbox": frames.MAX_FROM_WORKER}


def test_kinds_are_those_of_the_table() -> None:
    table = {name.upper(): ord(letter) for kinds in SHARED["kinds"].values() for name, letter in kinds.items()}
    assert {name: getattr(frames, name) for name in table} == table


def named(case: dict[str, Any]) -> str:
    return str(case["name"])


def all_frames(decoder: Decoder) -> Iterator[Frame]:
    while (frame := decoder.next()) is not None:
        yield frame


@pytest.mark.parametrize("case", SHARED["good"], ids=named)
def test_good_frames(case: dict[str, Any]) -> None:
    data = case["bytes"].encode("latin-1")
    want = [Frame(ord(frame["kind"]), frame["payload"].encode("latin-1")) for frame in case["frames"]]
    decoder = Decoder(LIMITS[case["from"]])
    decoder.feed(data)
    assert list(all_frames(decoder)) == want
    assert b"".join(frames.encode(*frame) for frame in want) == data


@pytest.mark.parametrize("case", SHARED["bad"], ids=named)
def test_bad_frames(case: dict[str, Any]) -> None:
    decoder = Decoder(frames.MAX_FROM_WORKER)
    decoder.feed(case["bytes"].encode("latin-1"))
    for _ in range(case["after"]):
        assert decoder.next() is not None
    match case["error"]:
        case "size":
            with pytest.raises(ProtocolError):
                decoder.next()
        case "short":
            assert decoder.next() is None
        case "kind":
            # The decoder accepts every type. Its user checks which types may come.
            assert decoder.next() is not None
        case other:
            pytest.fail(f"unknown sort of error {other}")


@given(
    # A BUSY carries nothing.
    st.lists(
        st.builds(Frame, st.integers(0, 255).filter(lambda kind: kind != frames.BUSY), st.binary(max_size=40)),
        max_size=6,
    ),
    st.lists(st.integers(1, 30), min_size=1, max_size=20),
)
def test_any_chunks_decode_the_same(sent: list[Frame], sizes: list[int]) -> None:
    stream = b"".join(frames.encode(*frame) for frame in sent)
    decoder = Decoder(limit=40)
    got: list[Frame] = []
    position = turn = 0
    while position < len(stream):
        size = sizes[turn % len(sizes)]
        decoder.feed(stream[position : position + size])
        got += all_frames(decoder)
        position, turn = position + size, turn + 1
    assert got == sent
    assert decoder.next() is None


def test_size_is_refused_at_the_header() -> None:
    decoder = Decoder(limit=10)
    header = frames.HEADER.pack(11, frames.CALLS)
    decoder.feed(header[:-1])
    assert decoder.next() is None
    decoder.feed(header[-1:])
    with pytest.raises(ProtocolError, match="11 bytes, at most 10"):
        decoder.next()


@pytest.fixture(name="pair")
def _pair() -> Iterator[tuple[Channel, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    fd = ours.detach()
    channel = Channel(fd, fd, limit=1 << 20)
    theirs.settimeout(10)
    with theirs:
        yield channel, theirs
    channel.close()


def test_channel_never_blocks(pair: tuple[Channel, socket.socket]) -> None:
    channel, peer = pair
    sent = [frames.encode(frames.CALLS, bytes([n]) * 100_000) for n in range(3)]
    for frame in sent:
        channel.send(frame)
    assert channel.backlog
    want = b"".join(sent)
    got = bytearray()
    while len(got) < len(want):
        got += peer.recv(1 << 16)
        channel.flush()
    assert got == want
    assert not channel.backlog


def test_channel_reads_what_is_there(pair: tuple[Channel, socket.socket]) -> None:
    channel, peer = pair
    assert channel.fill(), "an empty stream is not an ended one"
    assert channel.next() is None
    peer.sendall(frames.encode(frames.READY, b"a") + frames.encode(frames.DONE, b"b")[:-1])
    assert channel.fill()
    assert channel.next() == Frame(frames.READY, b"a")
    assert channel.next() is None
    peer.sendall(b"b")
    assert channel.fill()
    assert channel.next() == Frame(frames.DONE, b"b")
    peer.shutdown(socket.SHUT_WR)
    assert not channel.fill()


def test_channel_whose_peer_is_gone(pair: tuple[Channel, socket.socket]) -> None:
    channel, peer = pair
    peer.close()
    assert not channel.fill()
    with pytest.raises(OSError):
        channel.send(frames.encode(frames.DONE, b""))


def test_closed_channel_closes_both_descriptors() -> None:
    read_fd, other_write = os.pipe()
    other_read, write_fd = os.pipe()
    Channel(read_fd, write_fd, limit=1).close()
    for fd in (read_fd, write_fd):
        with pytest.raises(OSError):
            os.fstat(fd)
    os.close(other_write)
    os.close(other_read)


@pytest.mark.parametrize("kind, most", [(frames.READY, 1 << 16), (frames.DONE, 1 << 16), (frames.CALLS, 17 << 20)])
def test_most_that_a_worker_sends(kind: int, most: int) -> None:
    decoder = Decoder(frames.MAX_FROM_WORKER)
    decoder.feed(frames.HEADER.pack(most, kind))
    assert decoder.next() is None
    decoder = Decoder(frames.MAX_FROM_WORKER)
    decoder.feed(frames.HEADER.pack(most + 1, kind))
    with pytest.raises(ProtocolError):
        decoder.next()


def test_most_that_an_honest_worker_sends() -> None:
    assert calls.MAX_BATCH + 1 < frames.MAX_FROM_WORKER
    error = program.error_line(ValueError("\U0001f600" * 100_000))
    assert len(json.dumps({"error": error, "memory": False, "exit": 1})) < 1 << 16

"""Frames: the bounded messages between server, supervisor and worker.

A frame is a 4-byte big-endian length, one byte of type, and that many bytes of
payload. The server's side is engine/frame.go; both are tested against
testdata/frames.json.
"""

from __future__ import annotations

import os
import socket
import struct
from collections import deque
from contextlib import suppress
from typing import Final, NamedTuple

HEADER: Final = struct.Struct(">IB")

# Server to supervisor.
ATTACH: Final = ord("A")  # a server is here: say hello, repeat what it may have missed
PROGRAM: Final = ord("G")  # for the worker: run this
RESULTS: Final = ord("R")  # for the worker: the results of the last calls
KILL: Final = ord("K")  # end the program and report
FILE: Final = ord("F")  # for the worker: a piece of an input file
LIST: Final = ord("L")  # of an ended program: list the files it has left
TAKE: Final = ord("T")  # of an ended program: send one of them
STOP: Final = ord("S")  # the program is paused: stop what still runs, and answer STOPPED with this payload
# Worker to supervisor to server.
READY: Final = ord("Y")  # imports are done (not passed on; the hello tells it)
BUSY: Final = ord("U")  # with the calls that follow, some of the program still runs (not passed on)
CALLS: Final = ord("C")  # the program waits for these calls and nothing else
DONE: Final = ord("D")  # the program has ended
# Supervisor to server.
HELLO: Final = ord("H")
EXIT: Final = ord("X")  # how the program ended, and its output
LISTING: Final = ord("M")  # the files it has left
CONTENT: Final = ord("B")  # a piece of one; an empty one ends it
LOST: Final = ord("N")  # it cannot be read
STOPPED: Final = ord("P")  # the paused program has stopped: the answer to STOP, or without a payload to CALLS
RAN: Final = ord("E")  # it has run all the same, for these nanoseconds of processor time

# The largest payloads, in bytes. A peer that exceeds them has broken the protocol. A worker
# that keeps to the rules sends no more than calls.MAX_BATCH.
MAX_FROM_WORKER: Final = 17 << 20
MAX_FROM_SERVER: Final = 128 << 20
# Those of frames that are small.
_MAX_SMALL: Final = {READY: 1 << 16, BUSY: 0, DONE: 1 << 16}

# How much is read at once: little, for which memory is at hand, until more is there.
_CHUNK: Final = 1 << 12
_LARGE_CHUNK: Final = 1 << 18


class Frame(NamedTuple):
    kind: int
    payload: bytes


class ProtocolError(Exception):
    """The peer sent what is not a frame, or too large a one."""


def encode(kind: int, payload: bytes) -> bytes:
    """Return payload as one frame."""
    return HEADER.pack(len(payload), kind) + payload


class Decoder:
    """Cuts a stream of bytes into frames of at most ``limit`` bytes of payload."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._mark = b""
        self._lost = False

    def mark(self, mark: bytes) -> None:
        """Begin anew wherever mark appears from now on: whole frames, not to be met by chance."""
        self._mark = mark

    def skip(self) -> bool:
        """Drop what comes up to the next mark. Returns False if there is none to wait for."""
        self._lost = True
        self._trim()
        return bool(self._mark)

    def _trim(self) -> None:
        # The end may be the beginning of the mark.
        del self._buffer[: max(0, len(self._buffer) - len(self._mark) + 1)]

    def feed(self, data: bytes) -> None:
        """Add bytes as they came."""
        before = len(self._buffer)
        self._buffer += data
        if not self._mark:
            return
        found = self._buffer.rfind(self._mark, max(0, before - len(self._mark) + 1))
        if found >= 0:
            del self._buffer[:found]
            self._lost = False
        elif self._lost:
            self._trim()

    def next(self) -> Frame | None:
        """Return the next whole frame, or None.

        Raises ProtocolError as soon as the header of a frame claims too much.
        """
        if self._lost or len(self._buffer) < HEADER.size:
            return None
        length, kind = HEADER.unpack_from(self._buffer)
        limit = min(self._limit, _MAX_SMALL.get(kind, self._limit))
        if length > limit:
            raise ProtocolError(f"frame of {length} bytes, at most {limit} allowed")
        end = HEADER.size + length
        if len(self._buffer) < end:
            return None
        with memoryview(self._buffer) as view:
            payload = bytes(view[HEADER.size : end])
        del self._buffer[:end]
        return Frame(kind, payload)


class Channel:
    """One end of a stream of frames that never blocks.

    What cannot be written yet waits in memory; its owner stops producing while
    ``backlog`` is true.
    """

    def __init__(self, read_fd: int, write_fd: int, limit: int) -> None:
        os.set_blocking(read_fd, False)
        os.set_blocking(write_fd, False)
        self.read_fd = read_fd
        self.write_fd = write_fd
        self._decoder = Decoder(limit)
        self._chunk = _CHUNK
        self._outbox: deque[memoryview] = deque()

    @property
    def backlog(self) -> bool:
        """Whether something still waits to be written."""
        return bool(self._outbox)

    def send(self, frame: bytes) -> None:
        """Write a frame now as far as possible, the rest at the next flush."""
        self._outbox.append(memoryview(frame))
        self.flush()

    def flush(self) -> None:
        """Write what waits, as far as the peer takes it.

        Raises OSError if the peer is gone.
        """
        while self._outbox:
            view = self._outbox[0]
            try:
                written = os.write(self.write_fd, view)
            except BlockingIOError:
                return
            if written == len(view):
                self._outbox.popleft()
            else:
                self._outbox[0] = view[written:]

    def fill(self) -> bool:
        """Read what is there. Returns False at the end of the stream."""
        try:
            data = self._read(self._chunk)
        except BlockingIOError:
            return True
        except ConnectionError:
            return False
        self._chunk = _LARGE_CHUNK if len(data) == self._chunk else _CHUNK
        self._decoder.feed(data)
        return bool(data)

    def _read(self, size: int) -> bytes:
        return os.read(self.read_fd, size)

    def mark(self, mark: bytes) -> None:
        """Begin anew wherever mark appears in what is read."""
        self._decoder.mark(mark)

    def skip(self) -> bool:
        """Drop what is read up to the next mark. Returns False if there is none."""
        return self._decoder.skip()

    def next(self) -> Frame | None:
        """Return the next frame that has arrived whole, or None."""
        return self._decoder.next()

    def close(self) -> None:
        """Close both descriptors and forget what waits."""
        self._outbox.clear()
        os.close(self.read_fd)
        if self.write_fd != self.read_fd:
            os.close(self.write_fd)


# From Linux 6.16 on a socket can refuse descriptors; whoever sends one gets an error.
_SO_PASSRIGHTS: Final = 83
# The most descriptors that the kernel lets one message have.
_MAX_DESCRIPTORS: Final = 253


class WorkerChannel(Channel):
    """A channel to a worker, who may send descriptors along with its frames.

    To close a descriptor can take as long as the program likes that has made it: none
    is closed here. Those that are read stay open until this process ends, which waits
    for none, and there is one message of them at most.
    """

    _ROOM: Final = socket.CMSG_SPACE(_MAX_DESCRIPTORS * 4)

    def __init__(self, stream: socket.socket) -> None:
        with suppress(OSError):  # an older kernel
            stream.setsockopt(socket.SOL_SOCKET, _SO_PASSRIGHTS, 0)
        super().__init__(stream.fileno(), stream.fileno(), MAX_FROM_WORKER)
        self._stream = stream

    def _read(self, size: int) -> bytes:
        data, received, flags, _ = self._stream.recvmsg(size, self._ROOM, socket.MSG_CMSG_CLOEXEC)
        if received or flags & socket.MSG_CTRUNC:
            raise ProtocolError("a worker has sent descriptors")
        return data

    def close(self) -> None:
        """Close the stream and forget what waits."""
        self._outbox.clear()
        self._stream.close()

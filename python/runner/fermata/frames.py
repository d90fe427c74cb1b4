"""Frames: the bounded messages between server, supervisor and worker.

A frame is the length of its payload (4 bytes, big-endian), its type (1 byte) and the
payload. The server's side is engine/sandbox/frame.go; both sides are tested against
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
ATTACH: Final = ord("A")  # a server has attached: say hello, and repeat what it may have missed
PROGRAM: Final = ord("G")  # for the worker: run this program
RESULTS: Final = ord("R")  # for the worker: the results of the last calls
KILL: Final = ord("K")  # end the program and report its exit, with a payload also at which line it stood
FILE: Final = ord("F")  # for the worker: a piece of an input file; later, of a file for the program that waits
LIST: Final = ord("L")  # list the files that the ended program left
TAKE: Final = ord("T")  # send one of the files that the ended program left
STOP: Final = ord("S")  # stop the processes of the paused program, then answer STOPPED with this payload
# Worker to supervisor to server.
READY: Final = ord("Y")  # the imports are done; not passed on, because the hello tells it
BUSY: Final = ord("U")  # part of the program still runs while the calls that follow wait; not passed on
CALLS: Final = ord("C")  # the program waits for the results of these calls, and for nothing else
DONE: Final = ord("D")  # the program has ended
# Supervisor to server.
HELLO: Final = ord("H")
EXIT: Final = ord("X")  # how the program ended, and its output
LISTING: Final = ord("M")  # the files that the program left
CONTENT: Final = ord("B")  # a piece of a file; an empty piece ends the file
LOST: Final = ord("N")  # the file cannot be read
PLACED: Final = ord("W")  # the file for the program that waits is in its workspace, or why it is not
STOPPED: Final = ord("P")  # the paused program has stopped; answers STOP or, without a payload, follows CALLS
RAN: Final = ord("E")  # the program ran while it was paused, for this many nanoseconds of processor time
OUTPUT: Final = ord("O")  # a piece of what the program has printed, after an OUTPUT_HEAD

# The stream, and how many bytes of it come before this piece.
OUTPUT_HEAD: Final = struct.Struct(">BQ")
STDOUT: Final = 1
STDERR: Final = 2

# The largest payloads, in bytes. A peer that exceeds them has broken the protocol. Our own
# worker sends no more than calls.MAX_BATCH.
MAX_FROM_WORKER: Final = 17 << 20
MAX_FROM_SERVER: Final = 128 << 20
# The largest payloads of frames that are always small.
MAX_OUTPUT: Final = 1 << 14  # without its head
_MAX_SMALL: Final = {READY: 1 << 16, BUSY: 0, DONE: 1 << 16, OUTPUT: OUTPUT_HEAD.size + MAX_OUTPUT}

# How much to read at once: a little, which needs no new memory, unless there was more.
_CHUNK: Final = 1 << 12
_LARGE_CHUNK: Final = 1 << 18


class Frame(NamedTuple):
    kind: int
    payload: bytes


class ProtocolError(Exception):
    """The peer sent something that is not a frame, or a frame that is too large."""


def encode(kind: int, payload: bytes) -> bytes:
    """Return a frame with this payload."""
    return HEADER.pack(len(payload), kind) + payload


class Decoder:
    """Cuts a stream of bytes into frames of at most ``limit`` bytes of payload."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._mark = b""
        self._lost = False

    def mark(self, mark: bytes) -> None:
        """Restart at mark wherever it appears from now on.

        The mark must consist of whole frames and must not appear by chance.
        """
        self._mark = mark

    def skip(self) -> bool:
        """Drop everything up to the next mark. Return False if no mark is set."""
        self._lost = True
        self._trim()
        return bool(self._mark)

    def _trim(self) -> None:
        # Keep the end, which may be the beginning of the mark.
        del self._buffer[: max(0, len(self._buffer) - len(self._mark) + 1)]

    def feed(self, data: bytes) -> None:
        """Add the next bytes of the stream."""
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

        Raises ProtocolError as soon as the header of a frame announces a payload that is too large.
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

    Frames that cannot be written yet wait in memory. The owner of the channel must not send
    more while ``backlog`` is true.
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
        """Whether anything still waits to be written."""
        return bool(self._outbox)

    def send(self, frame: bytes) -> None:
        """Write as much of a frame as possible now, and the rest with the next flush."""
        self._outbox.append(memoryview(frame))
        self.flush()

    def flush(self) -> None:
        """Write as much of what waits as the peer accepts.

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
        """Read what has arrived. Return False at the end of the stream."""
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
        """Restart at mark wherever it appears in the stream, see Decoder.mark."""
        self._decoder.mark(mark)

    def skip(self) -> bool:
        """Drop everything up to the next mark. Return False if no mark is set."""
        return self._decoder.skip()

    def next(self) -> Frame | None:
        """Return the next whole frame, or None if it has not arrived yet."""
        return self._decoder.next()

    def close(self) -> None:
        """Close both descriptors and drop what waits to be written."""
        self._outbox.clear()
        os.close(self.read_fd)
        if self.write_fd != self.read_fd:
            os.close(self.write_fd)


# Since Linux 6.16 a socket can refuse descriptors: the sender of a descriptor gets an error.
_SO_PASSRIGHTS: Final = 83
# The most descriptors that the kernel allows in one message.
_MAX_DESCRIPTORS: Final = 253


class WorkerChannel(Channel):
    """A channel to a worker, which must not send descriptors along with its frames.

    Closing a descriptor can take as long as the program that made it likes. So a worker's
    descriptors are never closed here: they stay open until this process ends, which does
    not wait for them. The first message with descriptors ends the channel.
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

    def read_text(self, size: int) -> bytes:
        """Read what comes after the last frame, nothing at the end of the stream. No frame can be read after it."""
        return self._read(size)

    def close(self) -> None:
        """Close the stream and drop what waits to be written."""
        self._outbox.clear()
        self._stream.close()


def receive(stream: socket.socket) -> Frame:
    """Read one frame from a blocking socket, of a peer that is trusted not to send too much.

    Raises EOFError if the peer is gone.
    """
    length, kind = HEADER.unpack(_receive_exactly(stream, HEADER.size))
    return Frame(kind, _receive_exactly(stream, length))


def _receive_exactly(stream: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        # All at once, unless a signal interrupts: it takes long to join pieces of many megabytes.
        piece = stream.recv(size - len(data), socket.MSG_WAITALL)
        if not piece:
            raise EOFError("the other end is gone")
        data += piece
    return data

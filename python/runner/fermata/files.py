"""The files that an ended program has left in its workspace: listing them, and sending them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from json import loads
from typing import Final

from fermata import frames, sandbox, workspace

# How long to wait at most until killed processes are dead, in seconds.
_DEATH: Final = 1.0


class Files:
    """Answers the server's questions about files, after all other processes of the sandbox have ended.

    ``reply`` sends a frame to the server and returns whether the server can take more at once.
    """

    def __init__(self, reply: Callable[[bytes], bool]) -> None:
        self._reply = reply
        # The frames of the file for which the server has asked last that are not sent yet.
        self._content: Iterator[bytes] | None = None

    def list(self, payload: bytes) -> None:
        """Send the list of files."""
        request = loads(payload)
        if _all_dead():
            found = workspace.listing(sandbox.WORKSPACE, **request)
        else:
            # A process that still lives could change the files while they are read.
            found = workspace.Listing()
            found.close(request.get("wanted", ()))
        self._reply(frames.encode(frames.LISTING, found.encode()))

    def take(self, name: str) -> None:
        """Begin to send a file, in place of the one that was being sent."""
        self._content = _read(name)
        self.send_more()

    def send_more(self) -> None:
        """Send as much of the file as the server can take now."""
        while self._content is not None:
            frame = next(self._content, None)
            if frame is None:
                self._content = None
            elif not self._reply(frame):
                return

    def cancel(self) -> None:
        """Stop sending the file, since the server that has asked for it has gone."""
        self._content = None


def _read(name: str) -> Iterator[bytes]:
    """Yield the frames that carry a file."""
    try:
        root = os.open(sandbox.WORKSPACE, os.O_RDONLY | os.O_DIRECTORY)
        try:
            file = workspace.open_file(root, name)
        finally:
            os.close(root)
        with file:
            while data := file.read(workspace.CHUNK):
                yield frames.encode(frames.CONTENT, data)
    except OSError:
        yield frames.encode(frames.LOST, b"")
        return
    yield frames.encode(frames.CONTENT, b"")


def _all_dead() -> bool:
    """Wait until the killed processes are dead, and return whether they are."""
    deadline = time.monotonic() + _DEATH
    while time.monotonic() < deadline:
        try:
            os.kill(-1, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.001)
    return False

"""Placing: writes a file that the result of a tool hands over into the workspace of the waiting program.

The program is hostile and may run meanwhile. So no link is followed, no operation blocks, and no
existing file is written to: a new file replaces the file with its name when the new file is complete.
"""

from __future__ import annotations

import os
from contextlib import suppress
from json import loads

from fermata import workspace


class Placing:
    """Writes files beneath a directory as their pieces arrive, one after the other."""

    def __init__(self, directory: str) -> None:
        self._root = directory
        # The directory of the file, or -1, and the file, or -1.
        self._directory = self._file = -1
        self._base = self._temporary = ""
        # Why the file cannot be placed.
        self._problem = ""

    def take(self, payload: bytes) -> str | None:
        """Take one piece, in the form of workspace.Inputs.

        After the last one, return why the file could not be placed, or an empty text if it was placed.
        """
        end = 4 + int.from_bytes(payload[:4], "big")
        head = loads(payload[4:end])
        try:
            if head["first"]:
                self.cancel()
                self._problem = ""
                self._begin(head["name"])
            if not self._problem:
                self._write(memoryview(payload)[end:])
                if head["last"]:
                    self._finish()
        except OSError as error:
            self._problem = error.strerror or "it cannot be written"
        if self._problem or head["last"]:
            self.cancel()
        return self._problem if head["last"] else None

    def cancel(self) -> None:
        """Forget the file that is being placed, if there is one."""
        if self._file >= 0:
            os.close(self._file)
        if self._temporary:
            with suppress(OSError):
                os.unlink(self._temporary, dir_fd=self._directory)
        if self._directory >= 0:
            os.close(self._directory)
        self._directory = self._file = -1
        self._temporary = ""

    def _begin(self, name: str) -> None:
        """Open the directory of a file, which is made if it does not exist, and a new file in it."""
        *parents, self._base = workspace.segments(name)
        self._directory = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY)
        for parent in parents:
            with suppress(FileExistsError):
                os.mkdir(parent, 0o755, dir_fd=self._directory)
            inner = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=self._directory)
            os.close(self._directory)
            self._directory = inner
        temporary = f".fermata-{os.urandom(8).hex()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        self._file = os.open(temporary, flags, 0o644, dir_fd=self._directory)
        self._temporary = temporary

    def _write(self, content: memoryview) -> None:
        while content:
            content = content[os.write(self._file, content) :]

    def _finish(self) -> None:
        """Give the file its name."""
        os.fchmod(self._file, 0o644)
        os.rename(self._temporary, self._base, src_dir_fd=self._directory, dst_dir_fd=self._directory)
        self._temporary = ""
        placed = os.stat(self._base, dir_fd=self._directory, follow_symlinks=False)
        if not os.path.samestat(placed, os.fstat(self._file)):
            raise OSError(0, "the program has put something else in its place")

"""The workspace: files that are there before the program, and those it leaves.

Inputs are written by the worker before it runs the program. What is left at the end
is looked at by the supervisor, when everything else in the sandbox is dead: regular
files only, by descriptors, never through a link.
"""

from __future__ import annotations

import hashlib
import os
import stat
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BufferedReader
from json import dumps, loads
from typing import Any, BinaryIO, Final

# A file travels in frames of at most this many bytes of content.
CHUNK: Final = 1 << 20
# How many directory entries are looked at. A program that leaves more has the rest
# left out.
_MAX_ENTRIES: Final = 20_000
_MAX_SKIPPED_NAMES: Final = 20
_MAX_PATH: Final = 256
_MAX_DEPTH: Final = 10
# The name that stands for an empty directory.
_KEEP: Final = ".dirkeep"
# Format characters, controls, surrogates (bytes that are no UTF-8) and line ends
# have no place in a name that people are shown.
_REFUSED_CATEGORIES: Final = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")


class Inputs:
    """Writes input files as their pieces arrive."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._file: BinaryIO | None = None

    def take(self, payload: bytes) -> None:
        """Take one piece: a length, that much JSON (name, last, read_only), content."""
        end = 4 + int.from_bytes(payload[:4], "big")
        head = loads(payload[4:end])
        path = os.path.join(self._directory, head["name"])
        if self._file is None:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            self._file = open(path, "wb")
        self._file.write(memoryview(payload)[end:])
        if head["last"]:
            self._file.close()
            self._file = None
            if head["read_only"]:
                os.chmod(path, 0o444)


@dataclass
class Listing:
    """What a program has left: files in order, and what was left out and why."""

    files: list[dict[str, Any]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)

    def skip(self, name: str, reason: str) -> None:
        """Leave a file out."""
        self.reasons[reason] += 1
        if len(self.skipped) < _MAX_SKIPPED_NAMES:
            self.skipped.append(_shown(name))

    def encode(self) -> bytes:
        """Return the listing as JSON."""
        return dumps({"files": self.files, "skipped": self.skipped, "reasons": self.reasons}).encode()


def is_empty(directory: str) -> bool:
    """Tell whether there is nothing to be had from a directory."""
    try:
        with os.scandir(directory) as entries:
            return next(entries, None) is None
    except OSError:
        # The program may have taken it away, or the right to look.
        return True


def listing(directory: str, inputs: dict[str, int], max_files: int, max_size: int) -> Listing:
    """List the regular files below a directory, by name.

    ``inputs`` are the names and sizes of the input files: they do not count against
    ``max_files``, and one that has kept its size comes with its hash, which tells
    whether it has changed.
    """
    found = Listing()
    try:
        root = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        found.skip("", "unreadable")
        return found
    try:
        room = max_files
        for name, size in sorted(_walk(root, "", 1, found, [_MAX_ENTRIES])):
            if name not in inputs:
                if room == 0:
                    found.skip(name, "max_files")
                    continue
                room -= 1
            if size > max_size:
                found.skip(name, "size")
                continue
            entry = {"name": name, "size": size}
            if inputs.get(name) == size:
                entry["sha256"] = _digest(root, name)
            found.files.append(entry)
    finally:
        os.close(root)
    return found


def _walk(directory: int, prefix: str, depth: int, found: Listing, budget: list[int]) -> Iterator[tuple[str, int]]:
    """Yield names and sizes of regular files."""
    with os.scandir(directory) as entries:  # open already, so it can be read
        # A program can leave more entries than anybody wants to sort.
        batch = []
        for entry in entries:
            if budget[0] == 0:
                found.skip(prefix + entry.name, "max_files")
                break
            budget[0] -= 1
            batch.append(entry.name)
    if not batch and prefix:
        # An empty directory is kept by a file in it.
        batch.append(_KEEP)
        try:
            os.close(os.open(_KEEP, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, dir_fd=directory))
        except OSError:
            found.skip(prefix + _KEEP, "unreadable")
            return
    for base in batch:
        name = prefix + base
        if not _is_plain(name):
            found.skip(name, "path")
            continue
        try:
            info = os.stat(base, dir_fd=directory, follow_symlinks=False)
        except OSError:
            found.skip(name, "unreadable")
            continue
        if stat.S_ISDIR(info.st_mode):
            if base.startswith("."):
                continue
            if depth == _MAX_DEPTH:
                found.skip(name, "depth")
                continue
            try:
                inner = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
            except OSError:
                found.skip(name, "unreadable")
                continue
            try:
                yield from _walk(inner, f"{name}/", depth + 1, found, budget)
            finally:
                os.close(inner)
        elif stat.S_ISREG(info.st_mode) and info.st_nlink == 1:
            yield name, info.st_size
        elif not stat.S_ISLNK(info.st_mode):
            found.skip(name, "unreadable")


def _is_plain(name: str) -> bool:
    return (
        len(name) <= _MAX_PATH
        and "\\" not in name
        and not any(unicodedata.category(character) in _REFUSED_CATEGORIES for character in name)
    )


def _shown(name: str) -> str:
    return ascii(name[:_MAX_PATH])[1:-1]


def _digest(root: int, name: str) -> str:
    try:
        with open_file(root, name) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def open_file(root: int, name: str) -> BufferedReader:
    """Open a listed file for reading, along directories only.

    Raises OSError if it is not the regular file it was.
    """
    *parents, base = name.split("/")
    directory = os.dup(root)
    try:
        for parent in parents:
            inner = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
            os.close(directory)
            directory = inner
        fd = os.open(base, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory)
    finally:
        os.close(directory)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(f"not a regular file: {name}")
    return os.fdopen(fd, "rb")

"""The workspace: the input files of the program, and the files that it leaves.

The worker writes the inputs before it runs the program. When the program has ended and
everything else in the sandbox is dead, the supervisor looks at the files that are left. It
considers regular files only, opens them by descriptors and never follows a link.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from io import BufferedReader
from json import dumps, loads
from typing import BinaryIO, Final

# How many bytes of a file's content a frame may have.
CHUNK: Final = 1 << 20
# How many directory entries are read; the others are left out of the listing.
_MAX_ENTRIES: Final = 20_000
_MAX_SKIPPED_NAMES: Final = 20
_MAX_PATH: Final = 256
_MAX_DEPTH: Final = 10
# The name of the file that stands for an empty directory.
_KEEP: Final = ".dirkeep"
# The directory that Python makes beside imported modules is not a file of the program.
_CACHE: Final = "__pycache__"
# Names with these characters are not shown to people: control characters, surrogates (bytes that
# are not UTF-8), line ends, and characters that change the direction of text. The server refuses
# the same names.
_REFUSED_CATEGORIES: Final = ("Cc", "Cs", "Zl", "Zp")
_REFUSED: Final = "\\\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


class Inputs:
    """Writes input files as their pieces arrive."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.names: set[str] = set()
        self._file: BinaryIO | None = None

    def take(self, payload: bytes) -> None:
        """Take one piece: the length of a JSON object, the object (name, first, last, read_only), content."""
        end = 4 + int.from_bytes(payload[:4], "big")
        head = loads(payload[4:end])
        path = os.path.join(self.directory, head["name"])
        if head["first"]:
            self.names.add(head["name"])
            self._begin(path)
        assert self._file is not None
        self._file.write(memoryview(payload)[end:])
        if head["last"]:
            self._file.close()
            self._file = None
            if head["read_only"]:
                os.chmod(path, 0o444)

    def _begin(self, path: str) -> None:
        """Begin a file. It replaces a part of the file that a server may have sent before it died."""
        if self._file is not None:
            self._file.close()
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with suppress(FileNotFoundError):
            os.unlink(path)
        self._file = open(path, "xb")


def beyond(inputs: Inputs, most: int) -> int:
    """Return how many of the files that the program has left are too many, if ``most`` besides the inputs are kept."""
    try:
        space = os.statvfs(inputs.directory)
        # In a file system of its own, this tells that there are few without looking at them. The directory counts, too.
        if space.f_files - space.f_ffree <= most + 1:
            return 0
        root = os.open(inputs.directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            left = sum(1 for _ in _walk(root, "", 1, Listing(), [_MAX_ENTRIES], inputs.names, set()))
        finally:
            os.close(root)
    except OSError:
        # The listing will report it.
        return 0
    return max(0, left - most)


@dataclass
class Listing:
    """The files that a program has left, in order, and which files were left out and why."""

    files: list[dict[str, str]] = field(default_factory=list)
    # The input files that the program has removed.
    missing: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    # Why wanted files are not listed although something with their name exists.
    wanted: dict[str, dict[str, str | int]] = field(default_factory=dict)

    def add(self, name: str, digest: str = "") -> None:
        """List a file."""
        self.files.append({"name": name, "sha256": digest})

    def refuse(self, name: str, state: str, size: int = 0) -> None:
        """Say why a wanted file is not listed."""
        self.wanted[name] = {"state": state, "size": size}

    def close(self, wanted: Iterable[str]) -> None:
        """Say that nothing of the workspace can be read."""
        self.skip(".", "unreadable")
        for name in wanted:
            self.refuse(name, "unreadable")

    def skip(self, name: str, reason: str) -> None:
        """Leave a file out."""
        self.reasons[reason] += 1
        if len(self.skipped) < _MAX_SKIPPED_NAMES:
            self.skipped.append(_shown(name))

    def encode(self) -> bytes:
        """Return the listing as JSON."""
        return dumps(vars(self)).encode()


def is_empty(directory: str) -> bool:
    """Tell whether a directory is empty or does not exist."""
    try:
        with os.scandir(directory) as entries:
            return next(entries, None) is None
    except PermissionError:
        # The program has made the directory unreadable, which the listing will report.
        return False
    except FileNotFoundError:
        return True


def listing(
    directory: str,
    inputs: dict[str, int],
    fixed: list[str],
    max_files: int,
    max_size: int,
    wanted: Collection[str] = (),
) -> Listing:
    """List the regular files below a directory, in the order of their names, inputs first, then those that are wanted.

    ``inputs`` has the names and sizes of the input files that the program may change. They do
    not count against ``max_files``. If the size of one is unchanged the listing has its hash,
    which tells the server whether the content has changed. ``fixed`` has the names of the
    other input files, which are not listed. ``wanted`` are the files that the program had to
    produce. They are listed however many there are, wherever they are, and count against
    ``max_files``.
    """
    found = Listing()
    try:
        root = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        found.close(wanted)
        return found
    try:
        space = os.fstatvfs(root)
        # A file with holes can be larger than its disk.
        room = _Room(max_size, space.f_blocks * space.f_frsize)
        for name, size in _look_for(root, inputs, found).items():
            digest = _digest(root, name) if size == inputs[name] else ""
            # An input that has not changed may have any size.
            if room.take(size, bool(digest)):
                found.add(name, digest)
                continue
            found.skip(name, "size")
            if name in wanted:
                found.refuse(name, "too_large", size)
        known = {*inputs, *fixed}
        for name in wanted:
            state, size = _state_of(root, name)
            if state == "regular" and name not in known:
                if room.take(size):
                    known.add(name)
                    max_files -= 1
                    found.add(name)
                    continue
                state = "too_large"
            if state not in ("regular", "missing"):
                found.refuse(name, state, size)
        for name, size in sorted(_walk(root, "", 1, found, [_MAX_ENTRIES], known, _parents(wanted))):
            if size > room.most:
                found.skip(name, "size")
            elif max_files <= 0:
                found.skip(name, "max_files")
            else:
                room.take(size)
                max_files -= 1
                found.add(name)
    finally:
        os.close(root)
    return found


@dataclass
class _Room:
    """How large listed files may be: each of them, and all of those that follow together."""

    max_size: int
    left: int

    @property
    def most(self) -> int:
        """How large the next file may be."""
        return min(self.max_size, self.left)

    def take(self, size: int, always: bool = False) -> bool:
        """Take room for a file, if there is enough or if ``always`` is true. Return whether it was taken."""
        if size > self.most and not always:
            return False
        self.left -= size
        return True


def _parents(names: Iterable[str]) -> set[str]:
    """Return the directories of files with these names."""
    found = set()
    for name in names:
        while "/" in name:
            name = name.rpartition("/")[0]
            found.add(name)
    return found


def _look_for(root: int, inputs: Iterable[str], found: Listing) -> dict[str, int]:
    """Return the sizes of the inputs that still exist, and note in found which do not."""
    sizes = {}
    for name in sorted(inputs):
        try:
            with open_file(root, name) as file:
                sizes[name] = os.fstat(file.fileno()).st_size
        except PermissionError:
            found.skip(name, "unreadable")
        except OSError:
            # Nothing has this name, or something that is not a file.
            found.missing.append(name)
    return sizes


def _state_of(root: int, name: str) -> tuple[str, int]:
    """Return the state of the file with a name, and its size if it is regular.

    It is "regular" for a file that can be read, and otherwise the state of the output: "missing",
    "not_regular" or "unreadable".
    """
    try:
        with open_file(root, name) as file:
            return "regular", os.fstat(file.fileno()).st_size
    except OSError:
        pass
    try:
        return _obstacle(root, segments(name)), 0
    except PermissionError:
        return "unreadable", 0
    except OSError:
        return "missing", 0


def _obstacle(root: int, parts: list[str]) -> str:
    """Return the state of an output that exists but cannot be opened. Raises OSError if it does not exist."""
    for depth in range(1, len(parts)):
        # None of the directories above it is a link.
        above = os.stat("/".join(parts[:depth]), dir_fd=root, follow_symlinks=False)
        if stat.S_ISLNK(above.st_mode):
            return "not_regular"
    info = os.stat("/".join(parts), dir_fd=root, follow_symlinks=False)
    return "unreadable" if stat.S_ISREG(info.st_mode) and info.st_nlink == 1 else "not_regular"


def _walk(
    directory: int, prefix: str, depth: int, found: Listing, budget: list[int], known: set[str], waiting: set[str]
) -> Iterator[tuple[str, int]]:
    """Yield the names and sizes of the regular files below a directory, except for the known ones.

    ``waiting`` are directories that are left out while they are empty.
    """
    with os.scandir(directory) as entries:  # cannot fail: the directory is open
        # The budget limits the entries, since a program can leave too many to sort.
        batch = []
        for entry in entries:
            if budget[0] == 0:
                found.skip(prefix + entry.name, "max_files")
                break
            budget[0] -= 1
            batch.append(entry.name)
        else:
            if not batch and prefix and prefix[:-1] not in waiting:
                _keep_directory(directory, prefix, batch, found)
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
            if base.startswith(".") or base == _CACHE:
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
                yield from _walk(inner, f"{name}/", depth + 1, found, budget, known, waiting)
            finally:
                os.close(inner)
        elif name in known:
            continue
        elif stat.S_ISREG(info.st_mode) and info.st_nlink == 1:
            yield name, info.st_size
        elif not stat.S_ISLNK(info.st_mode):
            found.skip(name, "unreadable")


def _keep_directory(directory: int, prefix: str, batch: list[str], found: Listing) -> None:
    """Put a file into an empty directory, so that the listing has an entry for the directory."""
    try:
        os.close(os.open(_KEEP, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, dir_fd=directory))
    except OSError:
        found.skip(prefix + _KEEP, "unreadable")
        return
    batch.append(_KEEP)


def _is_plain(name: str) -> bool:
    return len(name) <= _MAX_PATH and all(map(_is_shown, name))


def _is_shown(character: str) -> bool:
    return character not in _REFUSED and unicodedata.category(character) not in _REFUSED_CATEGORIES


def _shown(name: str) -> str:
    return "".join(c if _is_shown(c) else ascii(c)[1:-1] for c in name[:_MAX_PATH])


def _digest(root: int, name: str) -> str:
    try:
        with open_file(root, name) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def segments(name: str) -> list[str]:
    """Return the parts of a name. Raises OSError if it can lead out of the workspace."""
    parts = name.split("/")
    if not {"", ".", ".."}.isdisjoint(parts):
        raise OSError(errno.EINVAL, f"not a name of a file: {name}")
    return parts


def open_file(root: int, name: str) -> BufferedReader:
    """Open a file for reading, without following links.

    Raises OSError if there is no such file or if it is not a regular file, and
    PermissionError if it cannot be read or has a second name.
    """
    *parents, base = segments(name)
    directory = os.dup(root)
    try:
        for parent in parents:
            inner = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
            os.close(directory)
            directory = inner
        fd = os.open(base, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory)
    finally:
        os.close(directory)
    info = os.fstat(fd)
    if not stat.S_ISREG(info.st_mode):
        os.close(fd)
        raise OSError(f"not a regular file: {name}")
    if info.st_nlink != 1:
        os.close(fd)
        raise PermissionError(f"not its only name: {name}")
    return os.fdopen(fd, "rb")

"""Files for a program that waits, as its supervisor writes them beside a hostile program."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from supervised import Sandbox

from fermata import frames
from fermata.frames import Frame
from fermata.placing import Placing


def piece(name: str, content: bytes, first: bool = True, last: bool = True) -> bytes:
    head = json.dumps({"name": name, "first": first, "last": last, "read_only": False}).encode()
    return len(head).to_bytes(4, "big") + head + content


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def names(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


def test_a_file_in_pieces(root: Path) -> None:
    placing = Placing(str(root))
    assert placing.take(piece("a/b/c.txt", b"one", last=False)) is None
    assert not (root / "a/b/c.txt").exists()
    assert placing.take(piece("a/b/c.txt", b"two", first=False)) == ""
    assert (root / "a/b/c.txt").read_bytes() == b"onetwo"
    assert names(root) == ["a", "a/b", "a/b/c.txt"]
    assert (root / "a/b/c.txt").stat().st_mode & 0o777 == 0o644


def test_an_existing_file_is_replaced_and_not_written_to(root: Path) -> None:
    (root / "x").write_text("old")
    os.link(root / "x", root / "y")
    with open(root / "x") as opened:
        assert Placing(str(root)).take(piece("x", b"new")) == ""
        assert opened.read() == "old"
    assert ((root / "x").read_text(), (root / "y").read_text()) == ("new", "old")


OBSTACLES: dict[str, tuple[str, str]] = {
    "a directory that is a link": ("link/x", "Not a directory"),
    "a directory that is a link further down": ("dir/link/x", "Not a directory"),
    "a pipe for a directory": ("pipe/x", "Not a directory"),
    "a file for a directory": ("file/x", "Not a directory"),
    "a directory for the file": ("dir", "Is a directory"),
    "out of the workspace": ("../outside/x", "not a name of a file: ../outside/x"),
    "an absolute path": ("/etc/x", "not a name of a file: /etc/x"),
    "a name that is too long": ("x" * 256, "File name too long"),
}


@pytest.mark.parametrize("name, problem", OBSTACLES.values(), ids=OBSTACLES.keys())
def test_obstacles(root: Path, name: str, problem: str) -> None:
    (root / "link").symlink_to("../outside")
    (root / "dir").mkdir()
    (root / "dir" / "link").symlink_to("../../outside")
    os.mkfifo(root / "pipe")
    (root / "file").write_text("mine")
    before = names(root.parent)
    placing = Placing(str(root))
    assert placing.take(piece(name, b"x" * 10, last=False)) is None
    assert placing.take(piece(name, b"x", first=False)) == problem
    assert names(root.parent) == before
    assert placing.take(piece("next", b"fine")) == ""


def test_what_stands_at_the_name_is_replaced(root: Path) -> None:
    (root / "link").symlink_to("../outside/secret")
    os.mkfifo(root / "pipe")
    placing = Placing(str(root))
    for name in ("link", "pipe"):
        assert placing.take(piece(name, b"new")) == ""
        assert not (root / name).is_symlink() and (root / name).read_bytes() == b"new"
    assert (root.parent / "outside" / "secret").read_text() == "secret"


def test_a_file_that_the_program_swaps(root: Path) -> None:
    placing = Placing(str(root))
    assert placing.take(piece("x", b"one", last=False)) is None
    [temporary] = root.iterdir()
    temporary.unlink()
    temporary.symlink_to("../outside/secret")
    assert placing.take(piece("x", b"two", first=False)) == "the program has put something else in its place"
    assert (root.parent / "outside" / "secret").read_text() == "secret"


def test_another_file_and_cancelling_leave_nothing(root: Path) -> None:
    placing = Placing(str(root))
    fds = len(os.listdir("/proc/self/fd"))
    assert placing.take(piece("x", b"one", last=False)) is None
    assert placing.take(piece("y", b"two", last=False)) is None
    placing.cancel()
    assert names(root) == [] and len(os.listdir("/proc/self/fd")) == fds


def answer(frame: Frame) -> Any:
    assert frame.kind == frames.PLACED
    return json.loads(frame.payload)


def test_the_supervisor_places_files(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = sandbox.running()
    monkeypatch.setattr(sandbox._supervisor._placing, "_root", str(tmp_path))
    server.send(frames.FILE, piece("runs.txt", b"while it runs"))
    assert answer(server.receive()) == {"error": ""}
    sandbox.say(frames.CALLS, [])
    assert server.receive().kind == frames.CALLS
    server.send(frames.FILE, piece("waits.txt", b"while it ", last=False))
    server.send(frames.FILE, piece("waits.txt", b"waits", first=False))
    assert answer(server.receive()) == {"error": ""}
    server.send(frames.FILE, piece("../x", b""))
    assert "not a name of a file" in answer(server.receive())["error"]
    server.send(frames.FILE, piece("lost.txt", b"half", last=False))
    # Another server comes in the middle of a file.
    second = sandbox.connect()
    assert second.attach()["state"] == "paused"
    assert second.receive().kind == frames.CALLS
    assert sorted(os.listdir(tmp_path)) == ["runs.txt", "socket", "waits.txt"]
    second.send(frames.RESULTS, b"[]")
    assert sandbox.hear() == Frame(frames.RESULTS, b"[]")
    sandbox.say(frames.DONE, {"exit": 0})
    assert (second.receive().kind, second.receive().kind) == (frames.DONE, frames.EXIT)
    second.send(frames.FILE, piece("late.txt", b"late"))
    second.send(frames.LIST, json.dumps({"inputs": {}, "fixed": [], "max_files": 5, "max_size": 99}).encode())
    assert second.receive().kind == frames.LISTING
    assert not (tmp_path / "late.txt").exists()

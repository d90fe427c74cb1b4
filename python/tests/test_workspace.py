"""Tests of the workspace: input files that come in pieces, and the files that a program leaves."""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Callable
from json import dumps, loads
from pathlib import Path
from typing import Any

import pytest

from fermata import workspace

# The cases that the server's tests go through, too.
NAMES: dict[str, list[Any]] = loads(
    (Path(__file__).parent.parent / "testdata" / "names.json").read_text(encoding="utf-8")
)
DISK = 10_000
NOBODY = 65534


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a workspace and change to it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def piece(name: str, content: bytes, first: bool = True, last: bool = True, read_only: bool = False) -> bytes:
    head = dumps({"name": name, "first": first, "last": last, "read_only": read_only}).encode()
    return len(head).to_bytes(4, "big") + head + content


def names(found: workspace.Listing) -> list[str]:
    return [file["name"] for file in found.files]


def listed(
    root: Path, inputs: dict[str, int] | None = None, fixed: list[str] | None = None, wanted: list[str] | None = None
) -> workspace.Listing:
    return workspace.listing(str(root), inputs or {}, fixed or [], 50, DISK, wanted or [])


def test_inputs_come_in_pieces(root: Path) -> None:
    inputs = workspace.Inputs(str(root))
    inputs.take(piece("a/b/c", b"one ", last=False))
    inputs.take(piece("a/b/c", b"two", first=False))
    inputs.take(piece("empty", b"", read_only=True))
    assert (root / "a/b/c").read_bytes() == b"one two"
    assert (root / "empty").read_bytes() == b"" and (root / "empty").stat().st_mode & 0o777 == 0o444


def test_inputs_are_given_again(root: Path) -> None:
    """A server that died may have sent some of the inputs, and a part of one, before."""
    inputs = workspace.Inputs(str(root))
    inputs.take(piece("a", b"old", read_only=True))
    inputs.take(piece("b", b"a part", last=False))
    inputs.take(piece("a", b"new", read_only=True))
    inputs.take(piece("b", b"all of it"))
    assert ((root / "a").read_bytes(), (root / "b").read_bytes()) == (b"new", b"all of it")


def test_listing_is_by_name(root: Path) -> None:
    for name in ("b", "a", "a-", "d/y", "d/x", "ü\u200d"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(name)
    (root / "d/empty").mkdir()
    assert names(listed(root)) == ["a", "a-", "b", "d/empty/.dirkeep", "d/x", "d/y", "ü\u200d"]
    assert loads(listed(root).encode())["reasons"] == {}


def test_inputs_are_recognised_by_their_hash(root: Path) -> None:
    large = b"x" * (DISK + 1)
    for name, content in {"same": b"12", "touched": b"12", "longer": b"123", "large": large, "grown": large}.items():
        (root / name).write_bytes(content)
    inputs = {"same": 2, "touched": 2, "longer": 2, "large": len(large), "grown": 2, "gone": 2, "a/b": 2}
    found = listed(root, inputs)
    digests = {file["name"]: file["sha256"] for file in found.files}
    two = hashlib.sha256(b"12").hexdigest()
    assert digests == {"large": hashlib.sha256(large).hexdigest(), "longer": "", "same": two, "touched": two}
    assert found.missing == ["a/b", "gone"]
    assert (found.skipped, found.reasons) == (["grown"], {"size": 1})


def test_fixed_files_are_left_out(root: Path) -> None:
    (root / "fixed").write_text("changed")
    (root / "other").write_text("x")
    assert names(listed(root, fixed=["fixed", "deleted"])) == ["other"]


def test_inputs_do_not_count(root: Path) -> None:
    for n in range(60):
        (root / f"{n:02}").write_text("x")
    found = listed(root, {f"{n:02}": 5 for n in range(20)})
    assert names(found) == [f"{n:02}" for n in range(60)]
    found = listed(root, {f"{n:02}": 5 for n in range(5)})
    assert len(names(found)) == 55 and found.reasons == {"max_files": 5}
    assert found.skipped == [f"{n:02}" for n in range(55, 60)]


def test_holes(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that together are larger than their disk consist mostly of holes. Some are left out."""
    real = os.fstatvfs

    def small(descriptor: int) -> os.statvfs_result:
        space = list(real(descriptor))
        space[1:3] = 1, 3 * DISK  # f_frsize, f_blocks
        return os.statvfs_result(space)

    monkeypatch.setattr(os, "fstatvfs", small)
    for name in "abcd":
        with open(name, "wb") as file:
            file.truncate(DISK)
    found = listed(root, {"c": 1})
    assert (names(found), found.skipped) == (["c", "a", "b"], ["d"])


def test_wanted_files_come_first(root: Path) -> None:
    for n in range(60):
        (root / f"{n:02}").write_text("x")
    (root / ".hidden").mkdir()
    (root / ".hidden/w").write_text("x")
    found = listed(root, {"07": 5}, ["08"], ["59", ".hidden/w", "07", "08", "nowhere", "03"])
    # There are 50 besides the input, and the wanted ones are among them.
    assert names(found) == ["07", "59", ".hidden/w", "03", *(f"{n:02}" for n in range(50) if n not in (3, 7, 8))]
    assert (found.wanted, found.reasons) == ({}, {"max_files": 9})
    few = workspace.listing(str(root), {}, [], 1, DISK, ["59", "58"])
    assert names(few) == ["59", "58"]


def test_wanted_files_are_found_where_nobody_looks(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace, "_MAX_ENTRIES", 10)
    for n in range(100):
        (root / f"{n}").write_text("x")
    wanted = [f"{n}" for n in range(100)]
    assert names(listed(root, wanted=wanted)) == wanted


def test_wanted_files_that_are_too_large(root: Path) -> None:
    with open("sparse", "wb") as file:
        file.truncate(1 << 40)
    (root / "edge").write_bytes(b"x" * DISK)
    (root / "over").write_bytes(b"x" * (DISK + 1))
    (root / "grown").write_bytes(b"x" * (DISK + 1))
    found = listed(root, {"grown": 1}, wanted=["sparse", "edge", "over", "grown"])
    assert names(found) == ["edge"]
    assert found.wanted == {
        "sparse": {"state": "too_large", "size": 1 << 40},
        "over": {"state": "too_large", "size": DISK + 1},
        "grown": {"state": "too_large", "size": DISK + 1},
    }
    assert found.reasons == {"size": 3}


def test_empty_directories_of_wanted_files_are_not_kept(root: Path) -> None:
    (root / "turn_1/files").mkdir(parents=True)
    (root / "other").mkdir()
    found = listed(root, wanted=["turn_1/files/a/b", "other/.dirkeep"])
    assert (names(found), found.wanted, os.listdir("other")) == ([], {}, [])
    assert names(listed(root)) == ["other/.dirkeep", "turn_1/files/.dirkeep"]


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "a//b", "./a", "..", ""])
def test_wanted_names_that_lead_out(root: Path, name: str) -> None:
    found = listed(root, wanted=[name])
    assert (names(found), found.wanted) == ([], {})


def test_hidden_directories_and_caches_are_left_out(root: Path) -> None:
    for name in (".hidden/x", "__pycache__/x.pyc", ".file"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("x")
    assert names(listed(root)) == [".file"]
    # An input is listed all the same.
    assert names(listed(root, {".hidden/x": 1})) == [".hidden/x", ".file"]


def link(root: Path) -> None:
    os.symlink("/etc/passwd", "it")


def link_to_itself(root: Path) -> None:
    os.symlink("it", "it")


def pipe(root: Path) -> None:
    os.mkfifo("it")


def unix_socket(root: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("it")


def other_name(root: Path) -> None:
    (root / "it").write_text("x")
    (root / ".d").mkdir()
    os.link("it", ".d/other")


@pytest.mark.parametrize(
    ("make", "reported", "missing"),
    [
        (link, False, True),
        (link_to_itself, False, True),
        (pipe, True, True),
        (unix_socket, True, True),
        (other_name, True, False),
    ],
)
def test_what_is_no_file(root: Path, make: Callable[[Path], None], reported: bool, missing: bool) -> None:
    make(root)
    (root / "good").write_text("x")
    found = listed(root)
    assert (names(found), found.skipped) == (["good"], ["it"] if reported else [])
    # A wanted file comes first.
    found = listed(root, wanted=["it", "good"])
    assert (names(found), found.wanted) == (["good"], {"it": {"state": "not_regular", "size": 0}})
    # The same in place of an input.
    assert listed(root, {"it": 1}, wanted=["it"]).wanted == {"it": {"state": "not_regular", "size": 0}}
    found = listed(root, {"it": 1})
    assert (names(found), found.missing) == (["good"], ["it"] if missing else [])
    assert found.skipped == ([] if missing else ["it"])
    descriptor = os.open(root, os.O_RDONLY)
    with pytest.raises(OSError):
        workspace.open_file(descriptor, "it")
    os.close(descriptor)


def test_directories_that_are_links(root: Path) -> None:
    outside = root / ".outside"
    outside.mkdir()
    (outside / "x").write_text("secret")
    os.symlink(outside, "d")
    found = listed(root, {"d/x": 6})
    assert (names(found), found.missing, found.skipped) == ([], ["d/x"], [])
    (root / "file").touch()
    found = listed(root, wanted=["d/x", "d/x/y", "file/x", "file"])
    assert (names(found), set(found.wanted)) == (["file"], {"d/x", "d/x/y"})
    assert {w["state"] for w in found.wanted.values()} == {"not_regular"}
    descriptor = os.open(root, os.O_RDONLY)
    with pytest.raises(OSError):
        workspace.open_file(descriptor, "d/x")
    os.close(descriptor)


@pytest.mark.parametrize("name", NAMES["allowed"], ids=ascii)
def test_allowed_names(root: Path, name: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text("x")
    found = listed(root)
    assert (names(found), found.reasons) == ([name], {})


@pytest.mark.parametrize("case", NAMES["refused"], ids=ascii)
def test_refused_names(root: Path, case: dict[str, str]) -> None:
    name = os.fsdecode(bytes.fromhex(case["hex"])) if "hex" in case else case["name"]
    if "runner" not in case:
        descriptor = os.open(root, os.O_RDONLY)
        with pytest.raises((OSError, ValueError)):
            workspace.open_file(descriptor, name)
        os.close(descriptor)
        return
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text("x")
    found = listed(root)
    assert (names(found), found.reasons, found.skipped) == ([], {case["runner"]: 1}, [case["shown"]])
    found.encode().decode("ascii")


def test_long_and_deep_names(root: Path) -> None:
    (root / ("d" * 200)).mkdir()
    (root / ("d" * 200) / ("e" * 55)).write_text("x")
    (root / ("d" * 200) / ("f" * 56)).write_text("x")
    os.makedirs("a/b/c/d/e/f/g/h/i/j")
    (root / "a/b/c/d/e/f/g/h/i/x").write_text("x")
    (root / "a/b/c/d/e/f/g/h/i/j/x").write_text("x")
    found = listed(root)
    assert names(found) == ["a/b/c/d/e/f/g/h/i/x", "d" * 200 + "/" + "e" * 55]
    assert found.reasons == {"path": 1, "depth": 1}
    assert "a/b/c/d/e/f/g/h/i/j" in found.skipped


def test_many_entries(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace, "_MAX_ENTRIES", 30)
    for n in range(100):
        (root / f"{n}").write_text("x")
    found = listed(root, {"99": 1})
    assert len(found.files) <= 31 and "99" in names(found)
    assert found.reasons["max_files"] == 1


def test_wanted_files_without_a_right_to_read(root: Path) -> None:
    (root / "it").write_text("x")
    os.chmod("it", 0)
    user = os.geteuid()
    if user == 0:
        os.chown("it", NOBODY, NOBODY)
        os.seteuid(NOBODY)
    try:
        found = listed(Path("."), wanted=["it"])
    finally:
        os.seteuid(user)
    assert (names(found), found.wanted) == ([], {"it": {"state": "unreadable", "size": 0}})


@pytest.mark.parametrize(("closed", "skipped"), [("it", ["it"]), (".", ["."])])
def test_no_right_to_read(root: Path, closed: str, skipped: list[str]) -> None:
    (root / "it").mkdir()
    os.chmod(closed, 0)
    user = os.geteuid()
    if user == 0:
        # Root can read everything, so this goes on as another user.
        for path in (".", "it"):
            os.chown(path, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    try:
        # A relative path, because other users may have no access to the directories above.
        here = Path(".")
        assert not workspace.is_empty(str(here))
        found = listed(here, wanted=["it", "it/x"])
        assert found.skipped == skipped
        # That a directory cannot be read is no news.
        states = {name: w["state"] for name, w in found.wanted.items()}
        assert states == {"it": "not_regular" if closed == "it" else "unreadable", "it/x": "unreadable"}
    finally:
        os.seteuid(user)
        os.chmod(closed, 0o700)


def test_empty(root: Path, tmp_path: Path) -> None:
    assert workspace.is_empty(str(root))
    assert workspace.is_empty(str(root / "nowhere"))
    found: dict[str, Any] = loads(listed(root).encode())
    assert found == {"files": [], "missing": [], "skipped": [], "reasons": {}, "wanted": {}}
    (root / "x").mkdir()
    assert not workspace.is_empty(str(root))

"""The files that an ended program has left, as its supervisor lists and sends them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from supervised import Sandbox

from fermata import files, frames
from fermata.frames import Frame


def test_files_of_an_ended_program(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    monkeypatch.setattr("fermata.sandbox.WORKSPACE", str(workspace))
    monkeypatch.setattr(files, "_all_dead", lambda: True)
    server = sandbox.running()
    (workspace / "large").write_bytes(b"x" * (5 << 20))
    (workspace / "small").write_bytes(b"small")
    sandbox.say(frames.DONE, {"exit": 0})
    assert server.receive().kind == frames.DONE
    assert server.exit()[0]["files"]
    wanted = {"inputs": {"small": 5, "gone": 1}, "fixed": [], "max_files": 5, "max_size": 1 << 30}
    server.send(frames.LIST, json.dumps(wanted).encode())
    found = json.loads(server.receive().payload)
    assert [file["name"] for file in found["files"]] == ["small", "large"] and found["missing"] == ["gone"]
    (tmp_path / "outside").write_bytes(b"secret")
    server.send(frames.TAKE, b"../outside")
    assert server.receive() == Frame(frames.LOST, b"")
    server.send(frames.TAKE, b"large")
    assert server.receive().kind == frames.CONTENT
    # Another server comes in the middle of a file, and is not sent the rest of it.
    second = sandbox.connect()
    assert second.attach()["state"] == "ended"
    assert (second.receive().kind, second.receive().kind) == (frames.DONE, frames.EXIT)
    second.send(frames.TAKE, b"small")
    assert second.receive() == Frame(frames.CONTENT, b"small")
    assert second.receive() == Frame(frames.CONTENT, b"")


def test_files_are_not_listed_while_something_lives(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_all_dead", lambda: False)
    server = sandbox.running()
    sandbox.say(frames.DONE, {"exit": 0})
    assert (server.receive().kind, server.receive().kind) == (frames.DONE, frames.EXIT)
    server.send(frames.LIST, b'{"wanted": ["report"]}')
    found = json.loads(server.receive().payload)
    assert (found["files"], found["missing"], found["reasons"]) == ([], [], {"unreadable": 1})
    assert found["wanted"] == {"report": {"state": "unreadable", "size": 0}}

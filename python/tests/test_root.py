"""The root of all sandboxes: what it shows of the machine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fermata import root


@pytest.mark.parametrize(
    ("prefix", "path", "shown"),
    [
        ("/usr", ["/usr/lib/python3", "/usr/local/lib"], []),
        ("/opt/venv", ["/opt/venv/lib/site-packages", "/usr/lib/python3"], ["/opt/venv"]),
        ("/opt/venv", ["/home/me/app"], ["/opt/venv"]),
        ("/opt/a", ["/opt/brew/lib/site-packages"], ["/opt/a", "/opt/brew/lib/site-packages"]),
        ("/usr2", [], ["/usr2"]),
    ],
)
def test_what_is_shown_of_the_interpreter(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], prefix: str, path: list[str], shown: list[str]
) -> None:
    for name in ("prefix", "exec_prefix"):
        monkeypatch.setattr(f"sys.{name}", prefix)
    monkeypatch.setattr("sys.base_prefix", "/usr")
    monkeypatch.setattr("sys.executable", "/usr/bin/python3")
    monkeypatch.setattr("sys.path", [*path])
    prefixes = root._prefixes()
    assert prefixes == shown
    root._forget_others(prefixes)
    left = root.sys.path
    assert left == [each for each in path if each != "/home/me/app"]
    assert ("/home/me/app" in capfd.readouterr().err) == (left != path)


def test_what_is_covered_of_proc() -> None:
    covers = {path: cover for cover, path in root._covers()}
    assert covers["/proc/cmdline"] == "/dev/null"
    assert covers["/proc/fs"] == "/var/empty"
    assert covers["/proc/stat"] == "/var/quiet/stat"
    assert covers["/proc/sys/kernel/random/boot_id"] == "/dev/null"
    for name in ("meminfo", "self", "net", "mounts", "1", "kcore", "sys"):
        assert f"/proc/{name}" not in covers


def test_how_busy_the_machine_is_remains_untold(tmp_path: Path) -> None:
    (tmp_path / "var").mkdir()
    root._make_quiet(str(tmp_path))
    quiet = {name: (tmp_path / "var/quiet" / name).read_text() for name in ("loadavg", "stat", "uptime")}
    assert quiet["loadavg"] == "0.00 0.00 0.00 1/1 1\n"
    assert re.fullmatch(r"\d+\.\d\d 0\.00\n", quiet["uptime"])
    real = Path("/proc/stat").read_text().splitlines()
    told = quiet["stat"].splitlines()
    assert [line.split()[0] for line in told] == [line.split()[0] for line in real]
    assert [line for line in told if line.startswith("btime")] == [line for line in real if line.startswith("btime")]
    assert all(set(line.split()[1:]) == {"0"} for line in told if not line.startswith("btime"))


def test_a_directory_is_copied(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "inner").mkdir(parents=True)
    (source / "a.py").write_bytes(b"a")
    (source / "inner" / "b.py").write_bytes(b"b")
    target.mkdir()
    root._copy(str(source), str(target))
    assert (target / "a.py").read_bytes() == b"a"
    assert (target / "inner" / "b.py").read_bytes() == b"b"
    assert len(list(target.rglob("*"))) == 3

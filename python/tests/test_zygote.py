"""The zygote: what it shows of the machine, and how its nursery reaps."""

from __future__ import annotations

import os
import select
import signal
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from fermata import linux, zygote


@pytest.fixture
def ends() -> Iterator[int]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    fd = linux.child_ends()
    yield fd
    os.close(fd)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end(code: int) -> int:
    """Make a child that ends, and wait until it has, without reaping it."""
    pid = os.fork()
    if pid == 0:
        os._exit(code)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    return pid


def test_every_child_is_reaped(ends: int) -> None:
    assert not select.select([ends], [], [], 0)[0]
    unknown = end(0)
    assert select.select([ends], [], [], 10)[0], "the end of a child is not noticed"
    os.read(ends, 1 << 16)
    assert not select.select([ends], [], [], 0)[0]
    worker = end(7)
    read, write = os.pipe()
    other_read, other_write = os.pipe()
    statuses = {worker: write, -5: other_write}
    zygote._reap(statuses)
    assert struct.unpack("i", os.read(read, 100)) == (7,)
    assert os.read(read, 1) == b"", "the end of the pipe is still open"
    assert statuses == {-5: other_write}
    for pid in (unknown, worker):
        with pytest.raises(ChildProcessError):
            os.waitpid(pid, 0)
    zygote._reap(statuses)
    for fd in (read, other_read, other_write):
        os.close(fd)


def test_a_signal_is_told(ends: int) -> None:
    worker = os.fork()
    if worker == 0:
        signal.pause()
    os.kill(worker, signal.SIGKILL)
    assert select.select([ends], [], [], 10)[0]
    read, write = os.pipe()
    zygote._reap({worker: write})
    assert struct.unpack("i", os.read(read, 100)) == (-9,)
    os.close(read)


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
    prefixes = zygote._prefixes()
    assert prefixes == shown
    zygote._forget_others(prefixes)
    left = zygote.sys.path
    assert left == [each for each in path if each != "/home/me/app"]
    assert ("/home/me/app" in capfd.readouterr().err) == (left != path)


def test_what_is_covered_of_proc() -> None:
    covers = {path: cover for cover, path in zygote._covers()}
    assert covers["/proc/cmdline"] == "/dev/null"
    assert covers["/proc/fs"] == "/var/empty"
    assert covers["/proc/sys/kernel/random/boot_id"] == "/dev/null"
    for name in ("meminfo", "self", "net", "mounts", "1", "kcore", "sys"):
        assert f"/proc/{name}" not in covers


def test_a_directory_is_copied(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "inner").mkdir(parents=True)
    (source / "a.py").write_bytes(b"a")
    (source / "inner" / "b.py").write_bytes(b"b")
    target.mkdir()
    zygote._copy(str(source), str(target))
    assert (target / "a.py").read_bytes() == b"a"
    assert (target / "inner" / "b.py").read_bytes() == b"b"
    assert len(list(target.rglob("*"))) == 3

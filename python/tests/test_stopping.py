"""Tests of stopping programs: with the freezers of this machine, and with signals, which a process can undo."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from fermata import linux, stopping
from fermata.stopping import Freezer, Signals

BUSY = "while True: pass"


def within(seconds: float, condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
    return True


def used(pid: int) -> int:
    """Return the processor time of a process in clock ticks."""
    return sum(map(int, stopping._fields(f"/proc/{pid}/stat")[11:15]))


@pytest.fixture(name="busy")
def _busy() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", BUSY]) as process:
        yield process
        process.kill()


@pytest.fixture(name="group", params=["freezer.state", "cgroup.freeze"])
def _group(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Make a control group that can be frozen, of each cgroup version. Skip if this user may not."""
    mount = tmp_path / "cgroup"
    mount.mkdir()
    try:
        if request.param == "freezer.state":
            linux.mount("none", str(mount), "cgroup", 0, "freezer")
        else:
            linux.mount("none", str(mount), "cgroup2", 0)
    except OSError as error:
        pytest.skip(f"no freezer here: {error}")
    group = mount / f"fermata-test-{os.getpid()}"
    try:
        group.mkdir()
        yield group
        within(10, lambda: not group.joinpath("cgroup.procs").read_text(encoding="ascii"))
        group.rmdir()
    finally:
        subprocess.run(["umount", str(mount)], check=True)


def test_freezer(group: Path, busy: subprocess.Popen[bytes]) -> None:
    files = {path.name: os.open(path, os.O_RDWR if os.access(path, os.W_OK) else os.O_RDONLY) for path in group.iterdir() if path.name in ("freezer.state", "cgroup.freeze", "cgroup.events")}  # fmt: skip
    freezer = Freezer.of(files)
    assert freezer is not None and not freezer.wakes
    (group / "cgroup.procs").write_text(str(busy.pid), encoding="ascii")
    assert not freezer.stopped()
    for _ in range(3):
        freezer.stop()
        assert within(5, freezer.stopped)
        # A signal does not wake the process; only the freezer does.
        busy.send_signal(signal.SIGCONT)
        before = used(busy.pid)
        time.sleep(0.05)
        assert used(busy.pid) == before and freezer.stopped()
        freezer.go()
        assert not freezer.stopped()
        assert within(5, lambda: used(busy.pid) > before)
    # A process that is killed while it is frozen dies when it is thawed.
    freezer.stop()
    assert within(5, freezer.stopped)
    busy.kill()
    freezer.go()
    assert busy.wait(5) == -signal.SIGKILL
    for fd in files.values():
        os.close(fd)


def test_no_freezer() -> None:
    assert Freezer.of({"listener": 3, "oom": 4}) is None


# A process whose first thread has ended while another thread runs, and a child of it.
THREADS = """
import ctypes, os, threading
def work():
    while True: pass
threading.Thread(target=work).start()
if os.fork() == 0:
    work()
print("begun", flush=True)
ctypes.CDLL(None).syscall(60, 0)
"""


def test_every_thread_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen([sys.executable, "-c", THREADS], stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None and process.stdout.readline() == b"begun\n"
        pids = [str(process.pid), *_children(process.pid)]
        monkeypatch.setattr(stopping, "_others", lambda: pids)
        monkeypatch.setattr(stopping, "signal_all", lambda number: os.killpg(process.pid, number))
        stopper = Signals(stopping.process_clock)
        assert within(5, lambda: stopping._fields(f"/proc/{process.pid}/stat")[0] == b"Z")
        assert not stopper.stopped(), "its first thread has ended, and others run"
        stopper.stop()
        assert within(5, stopper.stopped)
        before = stopper.used()
        time.sleep(0.05)
        assert stopper.used() == before
        os.kill(int(pids[1]), signal.SIGCONT)
        assert within(5, lambda: stopper.used() > before) and not stopper.stopped()
        os.killpg(process.pid, signal.SIGKILL)


def _children(pid: int) -> list[str]:
    found: list[str] = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with suppress(FileNotFoundError):
            found += Path(f"/proc/{pid}/task/{task}/children").read_text(encoding="ascii").split()
    return found


@pytest.mark.parametrize(
    "text, nanoseconds", [(b"123456789\n", 123456789), (b"nr_periods 5\nusage_usec 42\nuser_usec 40\n", 42000)]
)
def test_container_clock(text: bytes, nanoseconds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "usage").write_bytes(text)
    (tmp_path / "other").write_bytes(b"no such line\n")
    monkeypatch.setattr(stopping, "_USAGE_FILES", (str(tmp_path / "other"), str(tmp_path / "usage")))
    monkeypatch.setattr(time, "process_time_ns", lambda: 10)
    assert stopping.container_clock()() == nanoseconds - 10


def test_container_without_a_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stopping, "_USAGE_FILES", ("/nowhere",))
    assert stopping.container_clock() is stopping.process_clock
    assert stopping.process_clock() >= 0

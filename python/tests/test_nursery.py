"""A nursery: how it reaps."""

from __future__ import annotations

import os
import select
import signal
import struct
from collections.abc import Iterator

import pytest

from fermata import linux, nursery, zygote


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
    nursery._reap(statuses)
    assert struct.unpack("i", os.read(read, 100)) == (7,)
    assert os.read(read, 1) == b"", "the end of the pipe is still open"
    assert statuses == {-5: other_write}
    for pid in (unknown, worker):
        with pytest.raises(ChildProcessError):
            os.waitpid(pid, 0)
    nursery._reap(statuses)
    for fd in (read, other_read, other_write):
        os.close(fd)


def test_a_signal_is_told(ends: int) -> None:
    worker = os.fork()
    if worker == 0:
        signal.pause()
    os.kill(worker, signal.SIGKILL)
    assert select.select([ends], [], [], 10)[0]
    read, write = os.pipe()
    nursery._reap({worker: write})
    assert struct.unpack("i", os.read(read, 100)) == (-9,)
    os.close(read)


def test_tells_whether_a_supervisor_has_ended() -> None:
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(0)
    pidfd = linux.pidfd_open(child)
    try:
        assert not nursery._ends(pidfd)
        os.kill(child, signal.SIGKILL)
        assert nursery._ends(pidfd)
    finally:
        os.waitpid(child, 0)
        os.close(pidfd)


def test_a_nursery_that_was_killed_is_the_reason_why_its_zygote_ends() -> None:
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(0)
    pidfd = linux.pidfd_open(child)
    linux.pidfd_kill(pidfd)
    with pytest.raises(RuntimeError, match="the plain nursery was ended by SIGKILL: .* memory"):
        zygote._mourn("plain", linux.pidfd_reap(pidfd))
    os.close(pidfd)

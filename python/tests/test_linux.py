"""What the runner takes from Linux itself, since not every Python has it."""

from __future__ import annotations

import ast
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fermata import linux

# What a Python lacks that was built against an old C library, as portable builds are, or for an old
# kernel, and what musl's Pythons lack.
_MAYBE_LACKING = {
    "os": {
        *(
            "pidfd_open",
            "P_PIDFD",
            "PIDFD_NONBLOCK",
            "memfd_create",
            "getrandom",
            "copy_file_range",
            "preadv2",
            "pwritev2",
        ),
        *(
            "eventfd",
            "eventfd_read",
            "eventfd_write",
            "splice",
            "timerfd_create",
            "unshare",
            "setns",
            "posix_fallocate",
        ),
    },
    "signal": {"pidfd_send_signal"},
    "fcntl": {"F_ADD_SEALS", "F_GET_SEALS", "F_OFD_SETLK", "F_OFD_SETLKW", "F_OFD_GETLK"},
    "select": {"EPOLLEXCLUSIVE", "EPOLLWAKEUP"},
    "resource": {"prlimit"},
    "socket": {"AF_VSOCK", "AF_ALG", "AF_QIPCRTR"},
    "mmap": {"MAP_STACK", "MAP_NORESERVE", "MAP_POPULATE"},
}
_BEGINNINGS = {"os": ("MFD_", "EFD_", "GRND_", "RWF_", "SPLICE_", "TFD_", "CLONE_"), "fcntl": ("F_SEAL_",)}


def _taken() -> Iterator[tuple[str, str, str]]:
    """Yield each attribute of a module that the runner takes: file, module, name."""
    for path in sorted(Path(linux.__file__).parent.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                yield path.name, node.value.id, node.attr
            elif isinstance(node, ast.ImportFrom):
                yield from ((path.name, node.module or "", alias.name) for alias in node.names)


def test_the_runner_takes_nothing_that_a_python_may_lack() -> None:
    taken = list(_taken())
    assert ("zygote.py", "os", "fork") in taken
    lacking = [
        (file, module, name)
        for file, module, name in taken
        if name in _MAYBE_LACKING.get(module, ()) or name.startswith(_BEGINNINGS.get(module, ("\0",)))
    ]
    assert lacking == []


def test_a_process_is_killed_and_reaped_by_its_descriptor() -> None:
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(0)
    pidfd = linux.pidfd_open(child)
    assert not os.get_inheritable(pidfd)
    assert not select.select([pidfd], [], [], 0)[0]
    linux.pidfd_kill(pidfd)
    assert select.select([pidfd], [], [], 5)[0]
    linux.pidfd_reap(pidfd)
    with pytest.raises(ChildProcessError):
        os.waitpid(child, os.WNOHANG)
    with pytest.raises(ProcessLookupError, match="pidfd_send_signal"):
        linux.pidfd_kill(pidfd)
    os.close(pidfd)


def test_there_is_no_descriptor_of_a_process_that_does_not_exist() -> None:
    with pytest.raises(ProcessLookupError, match="pidfd_open"):
        linux.pidfd_open(2**22 + 1)


def test_a_file_in_memory_can_be_sealed() -> None:
    file = linux.memory_file("words")
    assert not os.get_inheritable(file)
    assert os.readlink(f"/proc/self/fd/{file}").startswith("/memfd:words")
    os.write(file, b"before")
    linux.seal(file)
    for change in (lambda: os.pwrite(file, b"x", 0), lambda: os.truncate(file, 1), lambda: os.truncate(file, 99)):
        with pytest.raises(PermissionError):
            change()
    assert os.pread(file, 99, 0) == b"before"
    os.close(file)


# In a process of its own, whose ctypes was not imported before.
_CALLBACKS = """
import fcntl, os, sys
sys.path.insert(0, sys.argv[1])
from fermata import linux, sandbox
linux.seal_callbacks(read_only_too=True)
sandbox.close_from(3)
left = [fd for fd in os.listdir("/proc/self/fd") if int(fd) > 3]
assert left in ([], [str(linux.CALLBACKS)]), left
if left:
    assert fcntl.fcntl(linux.CALLBACKS, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY
    assert not os.get_inheritable(linux.CALLBACKS)
    assert fcntl.fcntl(linux.CALLBACKS, 1034) == 15  # all seals
import ctypes
kept = [ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 1) for _ in range(1000)]
assert sum(function() for function in kept) == 1000
"""


def test_c_can_call_back_as_many_functions_as_before() -> None:
    runner = Path(linux.__file__).parents[1]
    ended = subprocess.run(
        [sys.executable, "-I", "-c", _CALLBACKS, runner], capture_output=True, text=True, timeout=9, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")

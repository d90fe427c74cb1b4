"""What is frozen stays what it was, costs a fork nothing, and nobody can change it for others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fermata import memory

_RUNNER = Path(memory.__file__).parents[1]

# In a process of its own: the memory of this one is to stay where it is.
_PRELUDE = """
import gc, hashlib, os, sys
sys.path.insert(0, sys.argv[1])
from fermata import memory

def status(key):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(key))

def digest():
    return hashlib.sha256(repr((words, table)).encode() + block).hexdigest()

memory.prepare()
words = [f"word {number}" for number in range(100_000)]
table = {word: [word, number] for number, word in enumerate(words)}
block = bytearray(os.urandom(3 << 20))
before, written = digest(), status("RssAnon")
descriptors = os.listdir("/proc/self/fd")
memory.freeze()
"""


def _run(code: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-I", "-c", _PRELUDE + code, _RUNNER], capture_output=True, text=True, timeout=9, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_everything_is_there_and_can_be_used() -> None:
    _run(
        """
assert digest() == before
for number, word in enumerate(words):
    table[word].append(str(number))
words.extend(map(str, range(100_000)))
del table["word 0"]
gc.collect()
assert table["word 99999"] == ["word 99999", 99999, "99999"] and words[-1] == "99999"
"""
    )


def test_what_was_written_is_in_a_file_now() -> None:
    _run(
        """
assert status("RssAnon") < written / 4, (written, status("RssAnon"))
assert os.listdir("/proc/self/fd") == descriptors, "the file is still open"
"""
    )


def test_a_block_can_grow_beyond_its_place() -> None:
    _run(
        """
block.extend(bytes(64 << 20))
assert block.count(0, 3 << 20) == 64 << 20
del block[3 << 20:]
assert digest() == before
"""
    )


def test_what_one_process_writes_no_other_sees() -> None:
    _run(
        """
child = os.fork()
if child == 0:
    block[:] = bytes(len(block))
    words.clear()
    os._exit(not any(block) and not words)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
assert digest() == before
"""
    )


def test_what_a_fork_finds_empty_stays_so() -> None:
    _run(
        """
import mmap
wiped = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
wiped.madvise(18)  # MADV_WIPEONFORK
wiped[:4] = b"seed"
memory.freeze()
assert wiped[:4] == b"seed"
child = os.fork()
if child == 0:
    os._exit(wiped[:4] != bytes(4))
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    )


def test_frozen_twice() -> None:
    _run(
        """
words = [word + "!" for word in words]
table = {word: [word, number] for number, word in enumerate(words)}
block[:] = os.urandom(len(block))
before, written = digest(), status("RssAnon")
memory.freeze()
assert status("RssAnon") < written / 4, (written, status("RssAnon"))
assert digest() == before
"""
    )


def test_the_file_cannot_be_written() -> None:
    _run(
        """
import fcntl
from fermata import linux
memory_file, made = linux.memory_file, []
def keep(name):
    made.append(os.dup(memory_file(name)))
    return os.dup(made[0])
linux.memory_file = keep
memory.freeze()
get_seals, every_seal = 1034, 0b1111
assert fcntl.fcntl(made[0], get_seals) == every_seal
assert os.fstat(made[0]).st_mode & 0o777 == 0
try:
    os.pwrite(made[0], b"x", 0)
except PermissionError:
    pass
else:
    raise AssertionError("it can be changed")
"""
    )


def test_no_room_leaves_everything_as_it_is() -> None:
    _run(
        """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
more = bytearray(os.urandom(64 << 20))
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
try:
    memory.freeze()
except OSError as error:
    assert "bytes of memory" in str(error), error
else:
    raise AssertionError("a file of that size was not to be had")
assert digest() == before
"""
    )


def test_not_beside_another_thread() -> None:
    _run(
        """
import threading, time
more, end = bytearray(os.urandom(64 << 20)), threading.Event()
written = status("RssAnon")
thread = threading.Thread(target=end.wait)
thread.start()
memory.freeze()
assert status("RssAnon") > written / 2, "it was frozen"
end.set()
thread.join()
while len(os.listdir("/proc/self/task")) > 1:
    time.sleep(0.001)
memory.freeze()
assert status("RssAnon") < written / 2, "it was not frozen"
"""
    )


def test_another_c_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_libc", object())
    memory.prepare()
    memory.freeze()

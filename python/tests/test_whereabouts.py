"""Whereabouts: the line that a program has reached, whatever it does there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from conftest import WorkerProcess

from fermata import asking, frames
from fermata.frames import WorkerChannel
from fermata.program import FILENAME

STUBS = """
@tool("ask", "ask", False)
async def _(**extra: Any) -> Any:
    ""
"""

Ask = Callable[..., int]


@pytest.fixture(name="ask")
def _ask(worker_process: WorkerProcess) -> Ask:
    def ask(code: str, **members: str) -> int:
        frame = worker_process.receive()
        pid = json.loads(frame.payload)["pid"]
        assert (frame.kind, pid) == (frames.READY, worker_process.pid)
        worker_process.send(frames.PROGRAM, {"code": code, "stubs": STUBS, **members})
        deadline = time.monotonic() + 5
        while "x" not in worker_process.printed()[0] and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.1)
        began = time.monotonic()
        line = asking.ask(WorkerChannel(worker_process.stream), pid)
        assert time.monotonic() - began < 0.5
        return line

    return ask


# Programs that print an x before they stay where they are, with the line of that.
PROGRAMS: dict[str, tuple[str, int]] = {
    "a loop": ("print('x')\nwhile True:\n    pass", 3),
    "a loop on one line": ("print('x')\n\nwhile True: pass", 3),
    "a function": ("def f():\n    print('x')\n    while True: pass\nf()", 3),
    "a sleep": ("import time\nprint('x')\ntime.sleep(60)", 3),
    "C code that keeps the lock": ("print('x')\nre.match('(a*)*b', 'a' * 60)", 2),
    "code of a library": ("import subprocess\nprint('x')\nsubprocess.run(['sleep', '3'], capture_output=True)", 3),
    "an await": ("print('x')\nawait asyncio.sleep(60)", 2),
    "an await in a function": ("async def f():\n    print('x')\n    await asyncio.sleep(60)\nawait f()", 3),
    "a loop of tasks": (
        "async def f():\n    print('x')\n    while True:\n        await asyncio.sleep(0)\nawait f()",
        4,
    ),
    "a gather": ("async def f():\n    await asyncio.sleep(60)\nprint('x')\nawait asyncio.gather(f(), f())", 4),
    "a loop after an await": ("await asyncio.sleep(0)\nprint('x')\nwhile True: pass", 3),
    "a loop of its own": ("async def f():\n    print('x')\n    await asyncio.sleep(60)\nasyncio.run(f())", 3),
    "a return at its end": ("print('x')\nwhile True: pass\nreturn 1", 2),
    "errors that are caught": (
        "print('x')\nwhile True:\n    try:\n        while True: pass\n    except BaseException: pass",
        4,
    ),
    "a thread": ("import threading\nthreading.Thread(target=threading.Event().wait).start()\nprint('x')", 0),
    "signals that are ignored": (
        "import signal\nfor n in (signal.SIGRTMAX, signal.SIGRTMAX - 1): signal.signal(n, signal.SIG_IGN)\n"
        "print('x')\nwhile True: pass",
        0,
    ),
    "signals that are blocked": (
        "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())\nprint('x')\nwhile True: pass",
        0,
    ),
    "descriptors that are closed": ("print('x')\nos.closerange(3, 100)\nwhile True: pass", 0),
    "stopped": ("import signal\nprint('x')\nos.kill(os.getpid(), signal.SIGSTOP)", 0),
}


@pytest.mark.parametrize("code, line", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_programs(ask: Ask, code: str, line: int) -> None:
    got = ask(code)
    # A loop may be seen where it decides to go on, and a task also where what awaits it is resumed.
    stands = code.splitlines()[got - 1].strip()
    assert got == line or line and (stands.startswith("while") or "sleep(0)" in code and stands == "await f()")


def test_shell(ask: Ask) -> None:
    assert ask("echo x; sleep 60", mode="bash", stubs="") == 0


def test_ended(worker_process: WorkerProcess) -> None:
    assert worker_process.receive().kind == frames.READY
    pid = worker_process.pid
    os.kill(pid, 9)
    worker_process.wait()
    assert asking.ask(WorkerChannel(worker_process.stream), pid) == 0


STACK = b"""Stack (most recent call first):
  File "/lib/x.py", line 9 in f
  File "<program>", line 7 in g
  File "<program>", line 8 in <module>
"""
IDLE = STACK.replace(b"9 in f", b"9 in select")

# What the worker says, and what is known when that was all of it, and when more may come.
TEXTS: dict[str, tuple[bytes, int, int | None]] = {
    "nothing": (b"", 0, None),
    "a stack": (STACK, 7, 7),
    "half a line": (STACK[: STACK.index(b" in g")], 0, None),
    "an event loop": (IDLE, 7, None),
    "an event loop that waits": (IDLE + b"\nawaits at line 3\n", 3, 3),
    "an event loop without tasks": (IDLE + b"\nawaits at line 0\n", 7, 7),
    "a task": (b"\nawaits at line 12\n", 12, 12),
    "frames of the runner": (b"\x00\x00\x00\x05C[]\n" + STACK, 7, 7),
    "too large a number": (STACK.replace(b"line 7", b"line 70000000"), 8, 8),
    "no text": (b"\xff" * 1000, 0, None),
}


@pytest.mark.parametrize("text, whole, part", TEXTS.values(), ids=TEXTS.keys())
def test_texts(text: bytes, whole: int, part: int | None) -> None:
    assert asking._line(text, final=True) == whole
    assert asking._line(text, final=False) == part


def test_name_of_the_program() -> None:
    assert asking._PROGRAM == FILENAME.encode()


def test_supervisors_stay_small() -> None:
    code = "import sys; sys.path.insert(0, sys.argv[1]); import fermata.supervisor; print(*sys.modules)"
    runner = os.path.dirname(os.path.dirname(asking.__file__))
    loaded = subprocess.run([sys.executable, "-I", "-c", code, runner], capture_output=True, check=True, text=True)
    assert not {"asyncio", "faulthandler", "fermata.program", "fermata.whereabouts"} & {*loaded.stdout.split()}

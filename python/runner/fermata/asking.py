"""The supervisor's side of whereabouts: when the time is over, it asks the worker which line the program has reached.

It asks by two signals. fermata.whereabouts answers in text and not in frames, since nothing else
follows. The answer is not trusted: a program can answer anything, or nothing.

Everything that this module imports takes memory in every supervisor.
"""

from __future__ import annotations

import os
import re
import select
import signal
import time
from typing import Final

from fermata.frames import ProtocolError, WorkerChannel

# The signal that asks for the stack of the main thread, and the one that asks where a coroutine awaits.
STACK: Final = signal.SIGRTMAX
AWAITS: Final = signal.SIGRTMAX - 1
# The answer to the second signal.
AWAITS_AT: Final = "\nawaits at line %d\n"

# How long to wait for an answer, in seconds, and how many bytes of it are read at most.
_PATIENCE: Final = 0.09
_MAX: Final = 1 << 16

# The file of a program in a stack, which is fermata.program.FILENAME.
_PROGRAM: Final = b"<program>"
# One line of what faulthandler writes: file, line and function of a frame, the innermost first.
_FRAME: Final = re.compile(rb'^  File "([^"\n]*)", line (\d{1,7}) in (\S+)$', re.MULTILINE)
_AWAITING: Final = re.compile(rb"^awaits at line (\d{1,7})$", re.MULTILINE)
# The function in which an event loop waits.
_IDLE: Final = b"select"


def ask(worker: WorkerChannel, pid: int) -> int:
    """Ask the worker with this process id which line its program has reached. Return 0 if that is not known."""
    deadline = time.monotonic() + _PATIENCE
    text = b""
    try:
        for number in (STACK, AWAITS):
            os.kill(pid, number)
        while (left := deadline - time.monotonic()) > 0 and len(text) < _MAX:
            if select.select([worker.read_fd], [], [], left)[0]:
                if not (piece := worker.read_text(_MAX)):
                    break
                text += piece
                if (line := _line(text, final=False)) is not None:
                    return line
    except (OSError, ProtocolError):
        return 0
    return _line(text, final=True) or 0


def _line(text: bytes, final: bool) -> int | None:
    """Return the line in an answer, or None while more of the answer must arrive."""
    # A line without its line end is incomplete.
    text = text[: text.rfind(b"\n") + 1]
    frames = _FRAME.findall(text)
    line = next((int(line) for file, line, _ in frames if file == _PROGRAM), 0)
    if line and frames[0][2] != _IDLE:
        return line
    if (awaits := _AWAITING.search(text)) is not None:
        return int(awaits[1]) or line
    return line if final else None

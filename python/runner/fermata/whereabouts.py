"""Whereabouts: at which line a program stands when its time is over.

The supervisor asks by two signals, and the worker answers on its stream, in text and not in
frames, since nothing else comes after it. The interpreter's handler of faulthandler answers with
the stack of the main thread, also from a loop or from C code that lets no Python run. A handler in
Python answers with the line at which the program's coroutine awaits, since a coroutine that
waits is on no stack. All of it is the program's word: it can answer what it likes, or not at all.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import re
import select
import signal
import socket
import time
from contextlib import suppress
from types import FrameType
from typing import Any, Final

from fermata.frames import ProtocolError, WorkerChannel
from fermata.program import FILENAME

_STACK: Final = signal.SIGRTMAX
_AWAITS: Final = signal.SIGRTMAX - 1

# How long to wait for an answer, in seconds, and the most bytes of it that are read.
_PATIENCE: Final = 0.09
_MAX: Final = 1 << 16

# One line of what faulthandler writes: file, line and function of a frame, the innermost first.
_FRAME: Final = re.compile(rb'^  File "([^"\n]*)", line (\d{1,7}) in (\S+)$', re.MULTILINE)
_ANSWER: Final = "\nawaits at line %d\n"
_AWAITING: Final = re.compile(rb"^awaits at line (\d{1,7})$", re.MULTILINE)
# The function in which an event loop waits.
_IDLE: Final = b"select"


def answer_on(stream: socket.socket) -> None:
    """Have this process, a worker, answer on its stream to the supervisor."""

    def tell(number: int, frame: FrameType | None) -> None:
        with suppress(OSError):
            stream.send((_ANSWER % _awaiting()).encode(), socket.MSG_DONTWAIT)

    faulthandler.register(_STACK, stream, all_threads=False)
    signal.signal(_AWAITS, tell)


def _awaiting() -> int:
    """Return the line at which the oldest task of the program awaits, or 0 if there is none."""
    with suppress(Exception):  # the tasks are the program's
        tasks = asyncio.all_tasks(asyncio.get_running_loop())
        for task in sorted(tasks, key=lambda task: (len(task.get_name()), task.get_name())):
            coroutine: Any = task.get_coro()
            line = 0
            while (frame := getattr(coroutine, "cr_frame", None)) is not None:
                if frame.f_code.co_filename == FILENAME:
                    line = frame.f_lineno or line
                coroutine = coroutine.cr_await
            if line:
                return line
    return 0


def ask(worker: WorkerChannel, pid: int) -> int:
    """Ask the worker with this process id at which line its program stands. Return 0 if that is not known."""
    deadline = time.monotonic() + _PATIENCE
    text = b""
    try:
        for number in (_STACK, _AWAITS):
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
    """Return the line that an answer tells, or None as long as more has to come."""
    # What has no line end yet has not come as a whole.
    text = text[: text.rfind(b"\n") + 1]
    frames = _FRAME.findall(text)
    line = next((int(line) for file, line, _ in frames if file == FILENAME.encode()), 0)
    if line and frames[0][2] != _IDLE:
        return line
    if (awaits := _AWAITING.search(text)) is not None:
        return int(awaits[1]) or line
    return line if final else None
